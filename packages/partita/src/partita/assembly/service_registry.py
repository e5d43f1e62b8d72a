"""Which function answers which operation, of every service that one server speaks, and which
rights each needs.

What is not here is refused as unknown; what has no rights here is refused where rights count.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from partita.database.operations import operation_registry as dynamodb
from partita.database.operations.operation_context import ReadHandler, WriteHandler
from partita.installation.partner_packages import COMPANIONS, entry_points
from partita.server.companions.companion_services import CompanionService
from partita.streams import kinesis_operations as kinesis

if TYPE_CHECKING:
    from partita.server.security.rights.requested_rights import Rights

READS: dict[str, ReadHandler] = {**dynamodb.READS, **kinesis.READS}
WRITES: dict[str, WriteHandler] = {**dynamodb.WRITES, **kinesis.WRITES}
ONLY_READS = dynamodb.ONLY_READS
PLAIN_READS = dynamodb.PLAIN_READS
OF_ARCHIVES = dynamodb.OF_ARCHIVES


def rights() -> dict[str, Rights]:
    """Which rights operations need. Imported when it is asked for: most servers start without."""
    from partita.server.security.rights import (
        item_rights,
        partiql_rights,
        recovery_rights,
        table_rights,
    )
    from partita.streams import kinesis_rights

    return {
        **item_rights.RIGHTS,
        **partiql_rights.RIGHTS,
        **table_rights.RIGHTS,
        **recovery_rights.RIGHTS,
        **kinesis_rights.RIGHTS,
    }


@cache
def companion_services() -> tuple[CompanionService, ...]:
    """What installed packages answer for beside a server."""
    return tuple(point.load() for point in entry_points(COMPANIONS).values())


def forwarded_rights() -> dict[str, Mapping[str, Rights]]:
    """Of operations that a companion answers, by how their targets begin, or by the service whose
    protocol is REST."""
    from partita.server.security.rights import administration_rights, backup_rights

    answered = [service for one in companion_services() for service in one.services]
    return {
        **{service.target: service.rights() for service in answered},
        "PartitaAccess": administration_rights.RIGHTS,
        "PartitaBackup": backup_rights.RIGHTS,
    }
