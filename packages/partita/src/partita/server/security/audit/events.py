"""Events in the form of CloudTrail's records: who, what, when, from where, and the outcome.

Never the data: of a request only the names of what it is about are written down.
(CloudTrail User Guide, "CloudTrail record contents")
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from random import random
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from partita.errors import PartitaError
from partita.server.http.messages import HttpRequest, HttpResponse
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.directory import ACCOUNT_ID

VERSION: Final = "1.11"
NAMES: Final = (
    *("TableName", "IndexName", "ResourceArn", "ResourceARN", "StreamArn", "StreamARN"),
    *("StreamName", "RoleArn", "RoleSessionName", "DurationSeconds"),
    *("name", "stateMachineArn", "executionArn", "activityArn", "resourceArn", "roleArn"),
    *("FunctionName", "Qualifier", "UUID", "EventSourceArn", "Role", "Name", "GroupName"),
    *("stateMachineAliasArn", "stateMachineVersionArn", "type"),
    *("UserName", "AccessKeyId", "PolicyName", "Holder"),
)
"""Members that name something."""
DATA_PLANE: Final = frozenset(
    (
        *("BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem"),
        *("ExecuteStatement", "ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan"),
        *("TransactGetItems", "TransactWriteItems", "UpdateItem", "GetRecords"),
        *("GetShardIterator", "PutRecord", "PutRecords", "Invoke"),
        *("GetActivityTask", "SendTaskFailure", "SendTaskHeartbeat", "SendTaskSuccess"),
        *("StartExecution", "StartSyncExecution", "TestState"),
    )
)
"""Operations on data; all others are on what holds it."""
NAMELESS: Final = frozenset(
    (
        *("BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction"),
        *("GetRecords", "GetShardIterator"),
    )
)
"""Those whose table or stream is in a statement, an iterator or an ARN."""
READS: Final = ("Describe", "List", "Get", "Query", "Scan", "BatchGet", "TransactGet", "Validate")


class Sampled(NamedTuple):
    """Requests for the data of a table that are written down, all or a share of them."""

    table: str
    share: float = 1.0


def parse_sampled(text: str) -> Sampled:
    """TABLE, TABLE:0.1, or * for all tables."""
    table, colon, share = text.partition(":")
    try:
        value = float(share) if colon else 1.0
    except ValueError:
        value = -1.0
    if not table or not 0 <= value <= 1:
        raise PartitaError(f"{text!r} is not TABLE, or TABLE:SHARE with a share from 0 to 1.")
    return Sampled(table, value)


def is_data(operation: str) -> bool:
    return operation in DATA_PLANE


def changes_something(operation: str) -> bool:
    return not operation.startswith(READS)


class _Named(msgspec.Struct):
    TableName: str = ""


_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_transaction: Final = msgspec.json.Decoder(list[dict[str, _Named]]).decode


def named_in(body: bytes) -> dict[str, Any]:
    """What a request for data names, without a look at the data: it may be megabytes."""
    try:
        members = _decode_members(body)
        named: dict[str, Any] = {
            name: msgspec.json.decode(members[name]) for name in NAMES if name in members
        }
        if "RequestItems" in members:
            named["RequestItems"] = dict.fromkeys(_decode_members(members["RequestItems"]))
        if "TransactItems" in members:
            named["TransactItems"] = [
                {action: {"TableName": part.TableName} for action, part in one.items()}
                for one in _decode_transaction(members["TransactItems"])
            ]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return named


def is_asked_for(sampled: Sequence[Sampled], body: Any, arns: Sequence[str] = ()) -> bool:
    """Whether a request for data is to be written down, which names tables or is about these."""
    if not sampled:
        return False
    tables = _tables(body).union(map(_name_in, arns))
    return any(
        (one.table == "*" or one.table in tables) and (one.share >= 1 or random() < one.share)
        for one in sampled
    )


def _tables(body: Any) -> set[str]:
    if not isinstance(body, dict):
        return set()
    named = {body.get(name) for name in ("TableName", "StreamName", "StreamARN")}
    named |= set(_keys(body.get("RequestItems")))
    for one in body.get("TransactItems") or ():
        if isinstance(one, dict):
            named |= {part.get("TableName") for part in one.values() if isinstance(part, dict)}
    return {
        _name_in(name) if name.startswith("arn:") else name
        for name in named
        if isinstance(name, str)
    }


def _name_in(arn: str) -> str:
    """The table or stream that an ARN is of: a table's stream and indexes are the table's."""
    kind = ":table/" if ":table/" in arn else ":stream/"
    return arn.partition(kind)[2].partition("/")[0]


def _keys(members: Any) -> list[str]:
    return list(members) if isinstance(members, dict) else []


def event(
    source: str,
    operation: str,
    caller: Caller | None,
    request: HttpRequest,
    body: Any,
    response: HttpResponse,
) -> dict[str, Any]:
    now = datetime.now(UTC)
    headers = request.headers
    found: dict[str, Any] = {
        "eventVersion": VERSION,
        "userIdentity": _identity(caller),
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": f"{source}.amazonaws.com",
        "eventName": operation,
        "awsRegion": "us-east-1",
        "sourceIPAddress": request.peer.address if request.peer else "",
        "userAgent": headers.get(b"user-agent", b"").decode("latin-1")[:256],
        "requestParameters": _parameters(body),
        "responseElements": None,
        "eventID": str(uuid4()),
        "readOnly": not changes_something(operation),
        "eventType": "AwsApiCall",
        "managementEvent": not is_data(operation),
        "recipientAccountId": ACCOUNT_ID,
        "eventCategory": "Data" if is_data(operation) else "Management",
    }
    if request.peer and request.peer.certificate:
        found["tlsDetails"] = {"clientCertificateSubject": request.peer.certificate}
    if response.status != 200:
        found |= _error(response)
    return found


def _identity(caller: Caller | None) -> dict[str, Any]:
    if caller is None:
        return {"type": "Unknown"}
    kind = {"User": "IAMUser", "Account": "Root"}.get(caller.kind, caller.kind)
    identity: dict[str, Any] = {
        "type": kind,
        "principalId": caller.user_id,
        "arn": caller.arn,
        "accountId": caller.principal.account,
        "accessKeyId": caller.access_key_id,
    }
    if "aws:username" in caller.keys:
        identity["userName"] = caller.keys["aws:username"][0]
    if caller.session is not None:
        issued = datetime.fromtimestamp(caller.session.issued_at, UTC)
        identity["sessionContext"] = {
            "attributes": {"creationDate": issued.strftime("%Y-%m-%dT%H:%M:%SZ")}
        }
    return identity


def _parameters(body: Any) -> dict[str, Any]:
    """Names, with their first letter small, as CloudTrail has them."""
    if not isinstance(body, dict):
        return {}
    named = {
        name[0].lower() + name[1:]: str(body[name])[:2048]
        for name in NAMES
        if isinstance(body.get(name), (str, int))
    }
    tables = _keys(body.get("RequestItems"))
    return {**named, "requestItems": tables} if tables else named


def _error(response: HttpResponse) -> dict[str, Any]:
    """Texts of errors may repeat values of a request; of a denial they do not."""
    try:
        content = json.loads(response.body)
        code = str(content["__type"]).rpartition("#")[2]
    except (ValueError, KeyError, TypeError):
        return {"errorCode": f"HTTP {response.status}"}
    error = {"errorCode": code}
    if code == "AccessDeniedException":
        error["errorMessage"] = str(content.get("Message", content.get("message", "")))
    return error
