"""The events with which AWS's services call the counter's function when visits have arrived.

A delivery stream sends its records, a bucket names the object that was created, a topic wraps the
message of the bucket, and a schedule sends only the time.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_plus
from uuid import uuid4

Event = dict[str, Any]
ACCOUNT = "123456789012"
CREATED = "ObjectCreated:Put"


class ArrivedRecords(NamedTuple):
    """The content of an event: records, or the keys of objects that were created."""

    records: list[bytes]
    keys: list[str]
    """The keys of objects."""


def of_records(name: str, records: Iterable[bytes], now: float) -> Event:
    """Returns the event with which a delivery stream calls an HTTP endpoint. (Firehose guide,
    "Understand HTTP endpoint delivery request and response specifications")"""
    return {
        "requestId": str(uuid4()),
        "timestamp": int(1000 * now),
        "deliveryStreamArn": f"arn:aws:firehose:us-east-1:{ACCOUNT}:deliverystream/{name}",
        "records": [{"data": b64encode(record).decode()} for record in records],
    }


def of_object(bucket: str, key: str, size: int, now: float) -> Event:
    """Returns the notification of a bucket. (S3 guide, "Event message structure")"""
    about = {
        "bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"},
        "object": {"key": quote_plus(key, safe="/"), "size": size},
    }
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": _stamp(now),
        "eventName": CREATED,
        "s3": {"s3SchemaVersion": "1.0", "configurationId": bucket, **about},
    }
    return {"Records": [record]}


def of_topic(topic: str, message: Event, now: float) -> Event:
    """Returns the event with which a topic calls a function. (Lambda guide, "Invoking Lambda
    functions with Amazon SNS")"""
    arn = f"arn:aws:sns:us-east-1:{ACCOUNT}:{topic}"
    notification = {
        "Type": "Notification",
        "MessageId": str(uuid4()),
        "TopicArn": arn,
        "Subject": "Amazon S3 Notification",
        "Message": json.dumps(message),
        "Timestamp": _stamp(now),
        "MessageAttributes": {},
    }
    record = {
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": f"{arn}:{uuid4()}",
        "Sns": notification,
    }
    return {"Records": [record]}


def arrived(event: Event) -> ArrivedRecords | None:
    """Reads an event. Returns None for the event of a schedule, which names nothing. Raises
    `ValueError` or `KeyError` for any other event."""
    if "records" in event:
        return ArrivedRecords(
            [b64decode(each["data"], validate=True) for each in event["records"]], []
        )
    if "Records" not in event:
        return None
    keys: list[str] = []
    for record in event["Records"]:
        if record.get("EventSource") == "aws:sns":
            inner = arrived(json.loads(record["Sns"]["Message"]))
            keys += inner.keys if inner else []
        else:
            keys.append(unquote_plus(record["s3"]["object"]["key"]))
    return ArrivedRecords([], keys)


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
