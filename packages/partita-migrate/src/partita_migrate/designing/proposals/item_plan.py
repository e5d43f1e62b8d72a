"""The items of a design and how they are found: what both kinds of design start from."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.keys.key_plan import KeyPlan
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.designing.proposals.workload import Workload
from partita_migrate.understanding.schema.column_refs import ColumnRef


@dataclass(frozen=True)
class ItemPlan:
    """The types of items, their keys, and the patterns that read and write them."""

    inputs: DesignInputs
    roles: TableRoles
    workload: Workload
    keys: dict[str, KeyPlan]
    """Key plans by entity, which is the table whose rows become items."""

    @property
    def entities(self) -> list[str]:
        return list(self.keys)

    def sources(self, entity: str) -> list[str]:
        """Returns the tables whose rows become items of an entity: itself and the tables of its
        shape."""
        return [entity, *(name for name, first in self.roles.twins.items() if first == entity)]

    def title(self, entity: str) -> str:
        """Returns what people call the items: versions go by the name of their parent."""
        version = self.roles.versions.get(entity)
        return version.parent if version else entity

    def ordered(self, entity: str) -> tuple[ColumnRef, ...]:
        """Returns the columns that patterns sort or compare by. Their numbers are padded in
        texts."""
        version = self.roles.versions.get(entity)
        own = (ColumnRef(entity, version.column),) if version else ()
        return (*own, *(ref for read in self.workload.reads_of(entity) for ref in read.order))

    def latest_only(self, entity: str) -> set[str]:
        """Returns the indexes that hold only the latest version of each row."""
        return {
            index.name
            for index in self.keys[entity].indexes
            if index.reads and all(read.is_latest for read in index.reads)
        }
