"""What the operations of recovery share: ids, ARNs, and the tables that they name."""

from __future__ import annotations

from partita.database.operations.context import Service, table_name
from partita.database.recovery.tasks import Workplace
from partita.database.tables.schema import CREATING, DELETING, Table
from partita.errors import TableNotFoundException


def workplace(service: Service) -> Workplace:
    assert service.recovery is not None, "only the process of the engine has an archive"
    return service.recovery


def new_id(service: Service) -> str:
    """Milliseconds, then chance: in the order of time, as the service's ids are."""
    return f"{int(service.clock() * 1000):014d}-{service.new_id()[:8]}"


def resource_arn(service: Service, table: str, kind: str, resource_id: str) -> str:
    return f"{service.table_arn(table)}/{kind}/{resource_id}"


def id_in_arn(arn: str, kind: str) -> str:
    """The id of a backup, an export or an import; an empty one if the ARN is none of that kind."""
    return arn.partition(f"/{kind}/")[2]


def existing_table(service: Service, name_or_arn: str) -> Table:
    """A table whose data can be read; tables have another error here than elsewhere."""
    name = table_name(name_or_arn)
    table = service.catalog.find(name)
    if table is None or table.status(service.clock()) in (CREATING, DELETING):
        raise TableNotFoundException(f"Table not found: {name}")
    return table
