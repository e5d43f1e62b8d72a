"""Audit events in the form of CloudTrail's records: who, what, when, from where, and the outcome.

They never contain data: of a request, only the names of its resources are recorded.
(CloudTrail User Guide, "CloudTrail record contents")
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from random import random
from typing import Any, Final, NamedTuple
from uuid import uuid4
from xml.sax.saxutils import unescape

import msgspec

from partita.errors import PartitaError
from partita.foundation.service_limits import KB
from partita.server.http.http_messages import HttpRequest, HttpResponse
from partita.server.protocol.aws_responses import CBOR_1_1
from partita.server.protocol.service_model import DYNAMODB, KINESIS, STEP_FUNCTIONS, STREAMS, load
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.user_directory import ACCOUNT_ID

VERSION: Final = "1.11"
UNKNOWN: Final = "Unknown"
NAMING_ENDS: Final = ("Name", "name", "Arn", "arn", "ARN", "S3Bucket")
NAMING: Final = frozenset(
    (
        *("AccessKeyId", "DurationSeconds", "Holder", "PolicyName", "Qualifier", "Role", "UUID"),
        *("page", "type"),
    )
)
"""Names and suffixes of members that name a resource and contain no data."""
DESCRIBED: Final = {
    "dynamodb": (DYNAMODB, STREAMS),
    "kinesis": (KINESIS,),
    "states": (STEP_FUNCTIONS,),
}
"""The service descriptions that list the members of requests, by event source."""
OWN_NAMES: Final = ("AccessKeyId", "Holder", "PolicyName", "UserName")
"""Naming members of Partita's own operations, which have no service description."""
REQUEST_ITEMS, TRANSACT_ITEMS = LISTS = ("RequestItems", "TransactItems")
"""Members of which only the table names are recorded."""
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
"""Operations on data; all others are management events."""
READS: Final = (
    *("Describe", "Explain", "List", "Get", "Query", "Scan", "BatchGet", "TransactGet", "Validate"),
)
DENIED: Final = frozenset(("AccessDenied", "AccessDeniedException"))
CHARS_MAX: Final = {
    "clientCertificateSubject": 512,
    "errorCode": 128,
    "errorMessage": 1024,
    "eventName": 128,
    "eventSource": 128,
    "sourceIPAddress": 64,
    "userAgent": 256,
}
"""The maximum lengths of some fields; longer texts are cut."""
TEXT_CHARS_MAX: Final = 1024
"""The maximum length of all other fields. AWS has no longer names, and few longer ARNs."""
PARAMETERS_MAX: Final = 12
LIST_ENTRIES_MAX, LIST_CHARS_MAX = 100, 8 * KB
LINE_BYTES_MAX: Final = 512 * KB
"""The resulting limit for a line, even if each character takes twelve bytes."""
EVERYTHING: Final = "*"
CUT: Final = "..."
_ERROR_HEADER: Final = re.compile(rb"x-amzn-errortype: ([^\r]*)\r\n")
_ERROR_ELEMENT: Final = re.compile(rb"<Code>([^<]*)</Code><Message>([^<]*)</Message>")


class SampledTable(NamedTuple):
    """A table whose data requests are recorded, all of them or a random share."""

    table: str
    share: float = 1.0


def parse_sampled(text: str) -> SampledTable:
    """Parses `TABLE`, `TABLE:0.1`, or `*` for all tables."""
    table, colon, share = text.partition(":")
    try:
        value = float(share) if colon else 1.0
    except ValueError:
        value = -1.0
    if not table or not 0 <= value <= 1:
        raise PartitaError(f"{text!r} is not TABLE, or TABLE:SHARE with a share from 0 to 1.")
    return SampledTable(table, value)


def is_data(operation: str) -> bool:
    return operation in DATA_PLANE


def changes_something(operation: str) -> bool:
    return not operation.startswith(READS)


class _TransactionPart(msgspec.Struct):
    """The table name in an action of a transaction."""

    TableName: str = ""


_decode_name: Final = msgspec.json.Decoder(str | int).decode
_decode_keys: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_transaction: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_part: Final = msgspec.json.Decoder(_TransactionPart).decode


@cache
def _names_decoder(source: str) -> Callable[[bytes], msgspec.Struct]:
    """Makes a decoder that extracts the naming members of a service's requests.

    It skips everything else without building objects, even a million members. The values stay raw,
    so that an invalid one does not hide the others.
    """
    models = [load(service) for service in DESCRIBED.get(source, ())]
    names = {
        name
        for model in models
        for shape in filter(None, model.inputs.values())
        for name, target in model.shapes[shape].members.items()
        if name in LISTS or (is_name(name) and model.shapes[target].kind in ("string", "integer"))
    }
    fields = [(name, msgspec.Raw, msgspec.Raw()) for name in sorted(names or OWN_NAMES)]
    return msgspec.json.Decoder(msgspec.defstruct("Names", fields)).decode


def is_name(member: str) -> bool:
    return member.endswith(NAMING_ENDS) or member in NAMING


def named_in(source: str, body: bytes) -> dict[str, Any] | None:
    """Returns the naming members of a request, without decoding its data, which may be megabytes.

    Returns None for a body that cannot be read.
    """
    try:
        members = msgspec.structs.asdict(_names_decoder(source)(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    values = {name: _value(name, raw) for name, raw in members.items() if bytes(raw)}
    return {name: value for name, value in values.items() if value is not None}


def _value(member: str, raw: msgspec.Raw) -> Any:
    """Returns a name, or the table names in a list; None for an invalid value."""
    try:
        if member == REQUEST_ITEMS:
            return list(_decode_keys(raw))
        if member == TRANSACT_ITEMS:
            parts = [part for item in _decode_transaction(raw) for part in item.values()]
            return list(dict.fromkeys(filter(None, map(_table_in, parts))))
        return _decode_name(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _table_in(part: msgspec.Raw) -> Any:
    try:
        return _decode_part(part).TableName
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def names_of(members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of a request that name a resource."""
    return {
        name: value
        for name, value in members.items()
        if name in LISTS or (isinstance(value, (str, int)) and is_name(name))
    }


def is_sampled(sampled: Sequence[SampledTable], tables: Collection[str]) -> bool:
    """Decides whether a request for the data of some tables is recorded; for a share, at random."""
    return any(
        (entry.table == "*" or entry.table in tables)
        and (entry.share >= 1 or random() < entry.share)
        for entry in sampled
    )


def tables_in(named: Mapping[str, Any]) -> set[str]:
    """Returns the tables and streams among the names in a request."""
    values = [named.get(name) for name in ("TableName", "StreamName", "StreamARN")]
    for name in LISTS:
        values += named.get(name) or ()
    texts = [value for value in values if isinstance(value, str)]
    return {name for name in texts if not name.startswith("arn:")} | tables_of(texts)


def tables_of(arns: Iterable[str]) -> set[str]:
    """Returns the tables and streams of ARNs. A table's streams and indexes count as the table."""
    kinds = ((":table/" if ":table/" in arn else ":stream/", arn) for arn in arns)
    return {arn.partition(kind)[2].partition("/")[0] for kind, arn in kinds}


def is_success(response: HttpResponse) -> bool:
    return 200 <= response.status < 300


def event(
    source: str,
    operation: str,
    caller: Caller | None,
    request: HttpRequest,
    named: Mapping[str, Any],
    response: HttpResponse,
    resources: Iterable[str] = (),
) -> dict[str, Any]:
    now = datetime.now(UTC)
    headers = request.headers
    fields: dict[str, Any] = {
        "eventVersion": VERSION,
        "userIdentity": _identity(caller),
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": f"{source}.amazonaws.com",
        "eventName": operation or UNKNOWN,
        "awsRegion": "us-east-1",
        "sourceIPAddress": request.peer.address if request.peer else "",
        "userAgent": headers.get(b"user-agent", b"").decode("latin-1"),
        "requestParameters": _parameters(named),
        "responseElements": None,
        "eventID": str(uuid4()),
        "readOnly": not changes_something(operation),
        "resources": [{"ARN": arn} for arn in dict.fromkeys(resources) if arn != EVERYTHING],
        "eventType": "AwsApiCall",
        "managementEvent": not is_data(operation),
        "recipientAccountId": ACCOUNT_ID,
        "eventCategory": "Data" if is_data(operation) else "Management",
    }
    if request.peer and request.peer.certificate:
        fields["tlsDetails"] = {"clientCertificateSubject": request.peer.certificate}
    if not is_success(response):
        fields |= _error(response)
    return {name: _bounded(value, name) for name, value in fields.items()}


def _bounded(value: Any, name: str) -> Any:
    """Cuts all texts and lists in a value to their maximum lengths."""
    if isinstance(value, str):
        return _cut(value, name)
    if isinstance(value, dict):
        return {key: _bounded(member, key) for key, member in value.items()}
    if isinstance(value, list):
        entries, chars = [], 0
        for element in value[:LIST_ENTRIES_MAX]:
            entry = _bounded(element, name)
            chars += len(str(entry))
            if chars > LIST_CHARS_MAX:
                break
            entries.append(entry)
        return entries
    return value


def _cut(text: str, name: str) -> str:
    most = CHARS_MAX.get(name, TEXT_CHARS_MAX)
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def _identity(caller: Caller | None) -> dict[str, Any]:
    if caller is None:
        return {"type": UNKNOWN}
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


def _parameters(named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the naming members with lower-case first letters, as in CloudTrail."""
    members = {_cut(name, "eventName"): value for name, value in names_of(named).items()}
    return {
        name[0].lower() + name[1:]: value if isinstance(value, list) else str(value)
        for name, value in islice(members.items(), PARAMETERS_MAX)
    }


def _error(response: HttpResponse) -> dict[str, Any]:
    """Returns the error code, and the message only of a denial: other messages may repeat values of
    the request."""
    code, text = _code_and_text(response)
    error = {"errorCode": code or f"HTTP {response.status}"}
    if code in DENIED:
        error["errorMessage"] = text
    return error


def _code_and_text(response: HttpResponse) -> tuple[str, str]:
    """Returns the error in a response in any protocol: AWS's JSON, CBOR or REST, or STS's XML."""
    in_xml = _ERROR_ELEMENT.search(response.body)
    if in_xml is not None:
        return in_xml[1].decode("latin-1"), unescape(in_xml[2].decode("latin-1"))
    try:
        content = _decoded(response)
        text = str(content.get("Message", content.get("message", "")))
        in_header = _ERROR_HEADER.search(response.headers)
        if in_header is not None:
            return in_header[1].decode("latin-1"), text
        return str(content["__type"]).rpartition("#")[2], text
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", ""


def _decoded(response: HttpResponse) -> Any:
    if response.content_type != CBOR_1_1:
        return json.loads(response.body)
    # Imported on first use: most servers never send CBOR.
    import cbor2

    return cbor2.loads(response.body)
