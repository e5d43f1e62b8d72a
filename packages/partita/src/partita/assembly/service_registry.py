"""The operations that a server answers, the function for each, and the rights that each needs.

An operation that is not listed is refused as unknown. With --auth, an operation without rights is
refused.
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
    """Returns the rights that operations need; imported late, since most servers need none."""
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
    """Returns the companions that installed packages provide."""
    return tuple(point.load() for point in entry_points(COMPANIONS).values())


def forwarded_rights() -> dict[str, Mapping[str, Rights]]:
    """Returns the rights of operations that companions answer.

    The keys are target prefixes, or service names for services with a REST protocol.
    """
    from partita.server.security.rights import administration_rights, backup_rights

    answered = [service for companion in companion_services() for service in companion.services]
    return {
        **{service.target: service.rights() for service in answered},
        "PartitaAccess": administration_rights.RIGHTS,
        "PartitaBackup": backup_rights.RIGHTS,
    }
