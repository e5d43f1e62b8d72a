"""Reports of batches that were given up, in the shape that Lambda sends to an on-failure
destination.

Here a report also has the event itself (`payload`) and the reason.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from partita_services.functions.mappings.event_sources import SourceRecord, SourceShard, event_of
from partita_services.iso_time import iso_time

EXHAUSTED, TOO_OLD = "RetryAttemptsExhausted", "RecordAgeExceeded"


class DeliveryFailure(NamedTuple):
    """The reason why records were given up."""

    condition: str
    attempts: int
    reason: str


def report_of(
    function_arn: str,
    version: str,
    batch_info: str,
    shard: SourceShard,
    records: Sequence[SourceRecord],
    failure: DeliveryFailure,
    now: float,
) -> bytes:
    report: dict[str, Any] = {
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": function_arn,
            "condition": failure.condition,
            "approximateInvokeCount": failure.attempts,
        },
        "responseContext": {
            "statusCode": 200,
            "executedVersion": version,
            "functionError": "Unhandled",
        },
        "version": "1.0",
        "timestamp": iso_time(now),
        batch_info: {
            "shardId": shard.name,
            "startSequenceNumber": records[0].sequence_number,
            "endSequenceNumber": records[-1].sequence_number,
            "approximateArrivalOfFirstRecord": iso_time(records[0].created_at, "seconds"),
            "approximateArrivalOfLastRecord": iso_time(records[-1].created_at, "seconds"),
            "batchSize": len(records),
            "streamArn": shard.stream_arn,
        },
        "payload": event_of(records).decode(),
        "reason": failure.reason,
    }
    return json.dumps(report).encode()
