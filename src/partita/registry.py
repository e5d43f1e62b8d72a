"""Which function answers which operation, of every service that one server speaks, and which
rights each needs.

What is not here is refused as unknown; what has no rights here is refused where rights count.
"""

from __future__ import annotations

from partita.database.operations import registry as dynamodb
from partita.database.operations.context import ReadHandler, WriteHandler
from partita.server.security.rights import items, statements, states, tables
from partita.server.security.rights.needs import Rights
from partita.streams.kinesis import registry as kinesis
from partita.streams.kinesis import rights as kinesis_rights

READS: dict[str, ReadHandler] = {**dynamodb.READS, **kinesis.READS}
WRITES: dict[str, WriteHandler] = {**dynamodb.WRITES, **kinesis.WRITES}
ONLY_READS = dynamodb.ONLY_READS

RIGHTS: dict[str, Rights] = {
    **items.RIGHTS,
    **statements.RIGHTS,
    **tables.RIGHTS,
    **kinesis_rights.RIGHTS,
}
FORWARDED_RIGHTS: dict[bytes, dict[str, Rights]] = {b"AWSStepFunctions": states.RIGHTS}
"""Of operations that a companion answers, by how their targets begin."""
