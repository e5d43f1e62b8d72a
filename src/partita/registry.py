"""Which function answers which operation, of every service that one server speaks.

What is not here is refused as unknown.
"""

from __future__ import annotations

from partita.database.operations import registry as dynamodb
from partita.database.operations.context import ReadHandler, WriteHandler
from partita.streams.kinesis import registry as kinesis

READS: dict[str, ReadHandler] = {**dynamodb.READS, **kinesis.READS}
WRITES: dict[str, WriteHandler] = {**dynamodb.WRITES, **kinesis.WRITES}
ONLY_READS = dynamodb.ONLY_READS
PLAIN_READS = dynamodb.PLAIN_READS
