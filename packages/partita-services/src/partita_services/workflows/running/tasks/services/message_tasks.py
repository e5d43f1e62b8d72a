"""Tasks that send messages through SNS, SQS and EventBridge. Messages go to the sinks that the
settings name."""

from __future__ import annotations

import hashlib
import time
import uuid
from base64 import b64decode
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from partita.foundation.server_settings import SinkSettings
from partita_services.functions.function_arns import REGION
from partita_services.functions.message_sinks import SendFailed, Sinks, event_of_bus
from partita_services.iso_time import iso_time
from partita_services.workflows.language.json_values import json_text, parse_json
from partita_services.workflows.language.language_errors import RUNTIME, StateError
from partita_services.workflows.running.storage.workflow_records import DelayedMessage
from partita_services.workflows.running.tasks.services.delayed_messages import DelayedMessages

PUBLISH_MEMBERS = (
    "TopicArn",
    "TargetArn",
    "Message",
    "Subject",
    "MessageStructure",
    "MessageAttributes",
    "MessageDeduplicationId",
    "MessageGroupId",
)
SEND_MEMBERS = (
    "QueueUrl",
    "MessageBody",
    "DelaySeconds",
    "MessageAttributes",
    "MessageSystemAttributes",
    "MessageDeduplicationId",
    "MessageGroupId",
)
ENTRY_MEMBERS = (
    "Time",
    "Source",
    "Resources",
    "DetailType",
    "Detail",
    "EventBusName",
    # For tracing, which is not implemented. The events do not contain it on AWS either.
    "TraceHeader",
)
DELAY_SECONDS_MAX = 900
FIFO = ".fifo"
SEQUENCE = "SequenceNumber"

Invalid = Callable[[str], StateError]
"""Makes the error with which a service refuses a parameter."""


class MessageSender(NamedTuple):
    """The sinks, and the role whose rights a message is sent with."""

    sinks: Sinks
    delayed: DelayedMessages
    role: str


class MessageAttribute(NamedTuple):
    name: str
    kind: str
    is_binary: bool
    value: str


class OutgoingMessage(NamedTuple):
    """A message in the two shapes that sinks get."""

    sink: SinkSettings
    content: dict[str, Any]
    """The message for a file, a URL or a stream."""
    event: dict[str, Any]
    """The event for a function, as Lambda calls it for that service."""
    key: str


async def publish(sender: MessageSender, request: dict[str, Any]) -> dict[str, Any]:
    """Publish to an SNS topic."""
    _check_members(request, PUBLISH_MEMBERS, "sns:publish")
    arn = request.get("TopicArn") or request.get("TargetArn") or ""
    sink = sender.sinks.find(arn)
    if sink is None:
        raise _absent("SNS.NotFoundException", f"Topic does not exist: {arn}")
    message = _text(request.get("Message", ""))
    if not message:
        raise _invalid_for_topic("Empty message")
    if structure := request.get("MessageStructure"):
        message = _structured(message, structure, sink)
    fifo = _fifo(request, arn, message, _invalid_for_topic)
    id = str(uuid.uuid4())
    notification = {
        "Type": "Notification",
        "MessageId": id,
        "TopicArn": arn,
        "Message": message,
        "Timestamp": iso_time(time.time()),
        "MessageAttributes": {
            name: {"Type": kind, "Value": value}
            for name, kind, _, value in _attributes(request, _invalid_for_topic)
        },
        **fifo,
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
    await _send(
        sender, OutgoingMessage(sink, notification, event, request.get("MessageGroupId") or id)
    )
    return {"MessageId": id, **_sequence(fifo)}


def _structured(message: str, structure: Any, sink: SinkSettings) -> str:
    """The part of a structured message for the protocol of the sink."""
    try:
        messages = parse_json(message) if structure == "json" else None
    except ValueError:
        messages = None
    if not isinstance(messages, dict):
        raise _invalid_for_topic("Message Structure - JSON message body failed to parse")
    if not isinstance(messages.get("default"), str):
        raise _invalid_for_topic("Message Structure - No default entry in JSON message body")
    if sink.function is not None:
        protocol = "lambda"
    else:
        protocol = (sink.url or "").partition(":")[0]
    return str(messages.get(protocol, messages["default"]))


async def send_message(sender: MessageSender, request: dict[str, Any]) -> dict[str, Any]:
    """Send to an SQS queue."""
    _check_members(request, SEND_MEMBERS, "sqs:sendMessage")
    url = str(request.get("QueueUrl", ""))
    sink = sender.sinks.named("sqs", url.rpartition("/")[2])
    if sink is None:
        raise _absent(
            "SQS.QueueDoesNotExistException", f"The specified queue does not exist: {url}"
        )
    id, body = str(uuid.uuid4()), _text(request.get("MessageBody", ""))
    if not body:
        raise _invalid_for_queue("The request must contain the parameter MessageBody.")
    delay = _delay(request, sink)
    attributes = _attributes(request, _invalid_for_queue)
    fifo = _fifo(request, sink.arn, body, _invalid_for_queue)
    answer = {
        "MD5OfMessageBody": _md5(body.encode()),
        **({"MD5OfMessageAttributes": _md5_of_attributes(attributes)} if attributes else {}),
        "MessageId": id,
        **_sequence(fifo),
    }
    message = {
        "messageId": id,
        "receiptHandle": id,
        "body": body,
        "attributes": {
            "SentTimestamp": str(int(time.time() * 1000)),
            **fifo,
            **_system_attributes(request),
        },
        "messageAttributes": {
            name: {"dataType": kind, "binaryValue" if is_binary else "stringValue": value}
            for name, kind, is_binary, value in attributes
        },
        "md5OfBody": answer["MD5OfMessageBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": sink.arn,
        "awsRegion": REGION,
    }
    key = request.get("MessageGroupId") or id
    await _send(sender, OutgoingMessage(sink, message, {"Records": [message]}, key), delay)
    return answer


def _delay(request: dict[str, Any], sink: SinkSettings) -> int:
    """Returns the delay of a message in seconds."""
    seconds = request.get("DelaySeconds", 0)
    text = f"Value {seconds} for parameter DelaySeconds is invalid. Reason: "
    if type(seconds) is not int or not 0 <= seconds <= DELAY_SECONDS_MAX:
        raise _invalid_for_queue(f"{text}DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}.")
    if seconds and sink.arn.endswith(FIFO):
        raise _invalid_for_queue(
            f"{text}The request include parameter that is not valid for this queue type."
        )
    return seconds


def _system_attributes(request: dict[str, Any]) -> dict[str, str]:
    attributes = request.get("MessageSystemAttributes", {})
    if unknown := sorted(set(attributes) - {"AWSTraceHeader"}):
        raise _invalid_for_queue(f"Message system attribute name '{unknown[0]}' is invalid.")
    return {name: str(value.get("StringValue", "")) for name, value in attributes.items()}


async def put_events(sender: MessageSender, request: dict[str, Any]) -> dict[str, Any]:
    """Put events on EventBridge buses."""
    _check_members(request, ("Entries",), "events:putEvents")
    entries = request.get("Entries")
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(e, dict) for e in entries)
    ):
        raise StateError(RUNTIME, "putEvents needs Entries")
    answers = []
    for entry in entries:
        _check_members(entry, ENTRY_MEMBERS, "an entry of events:putEvents")
        bus = str(entry.get("EventBusName", "default")).rpartition("/")[2]
        sink = sender.sinks.named("events", bus)
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
            _time(entry.get("Time")),
        )
        await _send(sender, OutgoingMessage(sink, event, event, event["id"]))
        answers.append({"EventId": event["id"]})
    failed = sum("ErrorCode" in answer for answer in answers)
    return {"Entries": answers, "FailedEntryCount": failed}


def _time(time: Any) -> str | None:
    """The time of an event, in whole seconds."""
    try:
        if isinstance(time, str):
            moment = datetime.fromisoformat(time)
            time = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        return None if time is None else iso_time(time, "seconds")
    except (TypeError, ValueError, OverflowError, OSError):
        raise StateError(RUNTIME, f"The Time of an event cannot be {time!r:.100}") from None


def _refused(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The entry of the answer for an event that is refused; None when it is valid."""
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
    """An optimized task fails when any of its entries failed. (Step Functions guide, "Add
    EventBridge events")"""
    if answer.get("FailedEntryCount"):
        raise StateError("EventBridge.FailedEntry", json_text(answer))


async def _send(sender: MessageSender, message: OutgoingMessage, delay_seconds: int = 0) -> None:
    is_called = message.sink.function is not None
    content = json_text(message.event if is_called else message.content)
    try:
        if not delay_seconds:
            await sender.sinks.send(message.sink, content.encode(), message.key)
            return
        await sender.sinks.check_right(message.sink)
    except SendFailed as error:
        raise StateError(RUNTIME, f"The message did not arrive: {error}") from error
    delayed = DelayedMessage(
        id=str(uuid.uuid4()),
        sink=message.sink.arn,
        role=sender.role,
        content=content,
        key=message.key,
    )
    await sender.delayed.add(delayed, delay_seconds)


def _check_members(request: dict[str, Any], supported: Collection[str], operation: str) -> None:
    """Refuse parameters that would have no effect here."""
    if unknown := sorted(set(request) - set(supported)):
        raise StateError(RUNTIME, f"The field {unknown[0]!r} is not supported by {operation}")


def _invalid_for_topic(text: str) -> StateError:
    return StateError("SNS.InvalidParameterException", f"Invalid parameter: {text}")


def _invalid_for_queue(text: str) -> StateError:
    return StateError("SQS.SqsException", text)


def _absent(error: str, text: str) -> StateError:
    return StateError(error, f"{text} Give it a sink in the settings of this server.")


def _text(value: Any) -> str:
    """Messages are texts, but a task may give any JSON."""
    return value if isinstance(value, str) else json_text(value)


def _attributes(request: dict[str, Any], invalid: Invalid) -> list[MessageAttribute]:
    members = request.get("MessageAttributes", {})
    if not isinstance(members, dict) or not all(isinstance(v, dict) for v in members.values()):
        raise invalid("MessageAttributes takes an object for each attribute.")
    attributes = []
    for name, member in sorted(members.items()):
        kind = member.get("DataType")
        if not isinstance(kind, str) or not kind:
            raise invalid(
                f"The message attribute '{name}' must contain a non-empty message attribute type."
            )
        is_binary = kind.startswith("Binary")
        value = member.get("BinaryValue" if is_binary else "StringValue")
        if value is None or len(member) > 2:
            raise invalid(f"The message attribute '{name}' must have one value of type '{kind}'.")
        attributes.append(MessageAttribute(name, kind, is_binary, _text(value)))
    return attributes


def _md5_of_attributes(attributes: list[MessageAttribute]) -> str:
    """MD5OfMessageAttributes. (SQS guide, "Calculating the MD5 message digest for message
    attributes")"""
    packed = b""
    for name, kind, is_binary, text in attributes:
        value = _decoded(text) if is_binary else text.encode()
        for part in (name.encode(), kind.encode()):
            packed += len(part).to_bytes(4, "big") + part
        packed += (b"\2" if is_binary else b"\1") + len(value).to_bytes(4, "big") + value
    return _md5(packed)


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise _invalid_for_queue("A BinaryValue is not valid Base64.") from None


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _fifo(request: dict[str, Any], name: str, content: str, invalid: Invalid) -> dict[str, str]:
    """The group of a message; in a FIFO queue or topic also its sequence number and deduplication
    id. Duplicates are not dropped here: the receiver can tell by the id."""
    group, id = request.get("MessageGroupId"), request.get("MessageDeduplicationId")
    if not name.endswith(FIFO):
        if id is not None:
            raise invalid(
                f"Value {id} for parameter MessageDeduplicationId is invalid. Reason: The request "
                "includes MessageDeduplicationId parameter that is not valid for this queue type."
            )
        return {} if group is None else {"MessageGroupId": str(group)}
    if not group:
        raise invalid("The request must contain the parameter MessageGroupId.")
    return {
        "MessageGroupId": str(group),
        "MessageDeduplicationId": str(id or hashlib.sha256(content.encode()).hexdigest()),
        SEQUENCE: f"{time.time_ns():020}",
    }


def _sequence(fifo: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fifo.items() if name == SEQUENCE}


OPERATIONS = {
    "sns:publish": publish,
    "sqs:sendMessage": send_message,
    "events:putEvents": put_events,
    "eventbridge:putEvents": put_events,
}
"""The operations, by their names in a Resource. An aws-sdk task calls EventBridge `eventbridge`."""
