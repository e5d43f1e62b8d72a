"""Where batches go that a function could not cope with: a file, or an HTTP endpoint.

What is written has the shape in which AWS Lambda tells of a failed batch, with the event itself.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from partita.streams.triggers.functions import CallFailed, in_thread, post
from partita.streams.triggers.records import Record, event_of

EXHAUSTED, TOO_OLD = "RetryAttemptsExhausted", "RecordAgeExceeded"
SEND_SECONDS_MAX = 60.0


def failure_of(
    function_arn: str,
    stream_arn: str,
    shard_id: str,
    records: Sequence[Record],
    condition: str,
    attempts: int,
    reason: str,
    now: float,
) -> dict[str, Any]:
    return {
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": function_arn,
            "condition": condition,
            "approximateInvokeCount": attempts,
        },
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": reason,
        },
        "version": "1.0",
        "timestamp": _moment(now, "milliseconds"),
        "DDBStreamBatchInfo": {
            "shardId": shard_id,
            "startSequenceNumber": records[0].sequence_number,
            "endSequenceNumber": records[-1].sequence_number,
            "approximateArrivalOfFirstRecord": _moment(records[0].created_at, "seconds"),
            "approximateArrivalOfLastRecord": _moment(records[-1].created_at, "seconds"),
            "batchSize": len(records),
            "streamArn": stream_arn,
        },
        "payload": event_of(records).decode(),
    }


async def send_failure(destination: str, folder: Path, failure: dict[str, Any]) -> None:
    """Returns when the failure is safe; CallFailed when that could not be done."""
    body = json.dumps(failure).encode()
    if destination.startswith(("http://", "https://")):
        await in_thread(partial(post, destination, body, SEND_SECONDS_MAX))
    else:
        await in_thread(partial(_append, folder / destination, body))


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CallFailed(f"{path} could not be written: {error.strerror}") from error


def _moment(seconds: float, precision: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision)[:-6] + "Z"
