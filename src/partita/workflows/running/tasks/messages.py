"""SNS, SQS and EventBridge: messages of tasks go to the sinks that the settings name."""

from __future__ import annotations

import hashlib
import time
import uuid
from typing import Any, NamedTuple

from partita.functions.destinations import moment
from partita.functions.sinks import SendFailed, Sinks, event_of_bus
from partita.settings import Sink
from partita.workflows.language.errors import RUNTIME, StateError
from partita.workflows.language.values import json_text, parse_json
from partita.workflows.running.arns import REGION


class Message(NamedTuple):
    sink: Sink
    content: dict[str, Any]
    """What a file, a URL or a stream gets."""
    event: dict[str, Any]
    """What a function gets, as Lambda calls it for that service."""
    key: str


async def publish(sinks: Sinks, request: dict[str, Any]) -> dict[str, Any]:
    """SNS."""
    arn = request.get("TopicArn") or request.get("TargetArn") or ""
    sink = sinks.find(arn)
    if sink is None:
        raise _absent("SNS.NotFoundException", f"Topic does not exist: {arn}")
    id = str(uuid.uuid4())
    notification = {
        "Type": "Notification",
        "MessageId": id,
        "TopicArn": arn,
        "Message": _text(request.get("Message", "")),
        "Timestamp": moment(time.time()),
        "MessageAttributes": _attributes(request, "Type", "Value"),
    }
    if "Subject" in request:
        notification["Subject"] = request["Subject"]
    event = {
        "Records": [
            {
                "EventSource": "aws:sns",
                "EventVersion": "1.0",
                "EventSubscriptionArn": f"{arn}:{id}",
                "Sns": notification,
            }
        ]
    }
    await _send(sinks, Message(sink, notification, event, request.get("MessageGroupId") or id))
    return {"MessageId": id}


async def send_message(sinks: Sinks, request: dict[str, Any]) -> dict[str, Any]:
    """SQS."""
    url = str(request.get("QueueUrl", ""))
    sink = sinks.named("sqs", url.rpartition("/")[2])
    if sink is None:
        raise _absent(
            "SQS.QueueDoesNotExistException", f"The specified queue does not exist: {url}"
        )
    id, body = str(uuid.uuid4()), _text(request.get("MessageBody", ""))
    digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
    attributes = _attributes(request, "dataType", "stringValue")
    message: dict[str, Any] = {
        "messageId": id,
        "receiptHandle": id,
        "body": body,
        "attributes": {"SentTimestamp": str(int(time.time() * 1000))},
        "messageAttributes": attributes,
        "md5OfBody": digest,
        "eventSource": "aws:sqs",
        "eventSourceARN": sink.arn,
        "awsRegion": REGION,
    }
    if group := request.get("MessageGroupId"):
        message["attributes"]["MessageGroupId"] = group
    await _send(sinks, Message(sink, message, {"Records": [message]}, group or id))
    return {"MD5OfMessageBody": digest, "MessageId": id}


async def put_events(sinks: Sinks, request: dict[str, Any]) -> dict[str, Any]:
    """EventBridge."""
    entries = request.get("Entries")
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(e, dict) for e in entries)
    ):
        raise StateError(RUNTIME, "putEvents needs Entries")
    answers = []
    for entry in entries:
        bus = str(entry.get("EventBusName", "default")).rpartition("/")[2]
        sink = sinks.named("events", bus)
        if sink is None:
            raise _absent(
                "EventBridge.ResourceNotFoundException", f"Event bus {bus} does not exist."
            )
        if (refusal := _refused(entry)) is not None:
            answers.append(refusal)
            continue
        detail = entry["Detail"]
        event = event_of_bus(
            entry["Source"],
            entry["DetailType"],
            parse_json(detail) if isinstance(detail, str) else detail,
            entry.get("Resources", []),
            entry.get("Time"),
        )
        await _send(sinks, Message(sink, event, event, event["id"]))
        answers.append({"EventId": event["id"]})
    failed = sum("ErrorCode" in answer for answer in answers)
    return {"Entries": answers, "FailedEntryCount": failed}


def _refused(entry: dict[str, Any]) -> dict[str, Any] | None:
    """What the answer has for an entry that is not taken."""
    for name in ("Source", "DetailType", "Detail"):
        if not entry.get(name) and entry.get(name) != {}:
            reason = f"{name} is a required argument."
            text = f"Parameter {name} is not valid. Reason: {reason}"
            return {"ErrorCode": "InvalidArgument", "ErrorMessage": text}
    detail = entry["Detail"]
    try:
        is_object = isinstance(parse_json(detail) if isinstance(detail, str) else detail, dict)
    except ValueError:
        is_object = False
    if not is_object:
        return {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
    return None


def check_taken(answer: dict[str, Any]) -> None:
    """An optimised task fails with any of its entries. (guide, "Add EventBridge events")"""
    if answer.get("FailedEntryCount"):
        raise StateError("EventBridge.FailedEntry", json_text(answer))


async def _send(sinks: Sinks, message: Message) -> None:
    is_called = message.sink.function is not None
    content = message.event if is_called else message.content
    try:
        await sinks.send(message.sink, json_text(content).encode(), message.key)
    except SendFailed as error:
        raise StateError(RUNTIME, f"The message did not arrive: {error}") from error


def _absent(error: str, text: str) -> StateError:
    return StateError(error, f"{text} Give it a sink in the settings of this server.")


def _text(value: Any) -> str:
    """Messages are texts; a task may give any JSON."""
    return value if isinstance(value, str) else json_text(value)


def _attributes(request: dict[str, Any], kind: str, value: str) -> dict[str, Any]:
    found = request.get("MessageAttributes", {})
    return {
        name: {kind: one.get("DataType"), value: one.get("StringValue", one.get("BinaryValue"))}
        for name, one in found.items()
    }


OPERATIONS = {
    "sns:publish": publish,
    "sqs:sendMessage": send_message,
    "events:putEvents": put_events,
    "eventbridge:putEvents": put_events,
}
"""By their names in a Resource; an aws-sdk task calls EventBridge by its own name."""
