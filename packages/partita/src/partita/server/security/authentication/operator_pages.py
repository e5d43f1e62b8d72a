"""The operator's pages: the right that each needs, and how browsers and Prometheus authenticate.

A request for a page is either signed like other requests, for the service `partita`, or sends an
access key and its secret as name and password (HTTP Basic), for clients that cannot sign. The
latter is only as safe as the connection.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from hmac import compare_digest
from http import HTTPStatus
from time import time
from typing import Final
from urllib.parse import unquote_to_bytes

from partita.database.operations.operation_context import DatabaseService
from partita.errors import AccessDeniedException, DynamoDBError
from partita.server.http.http_messages import JSON, HttpRequest, HttpResponse
from partita.server.protocol.aws_responses import error_body
from partita.server.security.identities.callers import Caller, Callers, unknown_key
from partita.server.security.rights.requested_rights import RequestedRight

ACTIONS: Final = {
    b"/metrics": "GetMetrics",
    b"/partitions": "GetPartitions",
    b"/insights": "GetInsights",
    b"/requests": "GetRequests",
    b"/explain": "ExplainStatement",
    b"/moves": "GetMoves",
    b"/moves/steer": "SteerMoves",
}
OTHER: Final = "GetPage"
POLLED: Final = frozenset((b"/metrics", b"/requests", b"/insights", b"/partitions", b"/moves"))
"""Pages that Prometheus, the console and `partita top` request every few seconds."""
SIGNING_NAME: Final = "partita"
BASIC: Final = b"Basic "
_TABLE: Final = re.compile(rb"[?&]table=([^&]+)")
CHALLENGE: Final = b'www-authenticate: Basic realm="partita"\r\n'


def need_of(service: DatabaseService, path: bytes) -> RequestedRight:
    """Returns the right that a page needs. Pages that are not in ACTIONS share `GetPage`."""
    name = path.decode("latin-1").strip("/")
    action = ACTIONS.get(path, OTHER)
    arn = f"arn:aws:partita:{service.region}:{service.account_id}:page/{name}"
    return RequestedRight(f"partita:{action}", arn)


def named_in(target: bytes) -> dict[str, str]:
    """Returns what the audit log records about a page; never the statement of `/explain`."""
    named = {"page": target.partition(b"?")[0].decode("latin-1")}
    table = _TABLE.search(target)
    return {**named, "TableName": unquote_to_bytes(table[1]).decode("latin-1")} if table else named


def has_password(request: HttpRequest) -> bool:
    return request.headers.get(b"authorization", b"").startswith(BASIC)


def password_of(request: HttpRequest) -> tuple[str, bytes]:
    """Returns the access key and the password in a request's Basic credentials."""
    authorization = request.headers[b"authorization"]
    try:
        name, _, password = b64decode(authorization[len(BASIC) :], validate=True).partition(b":")
    except (Base64Error, ValueError):
        raise unknown_key() from None
    return name.decode("latin-1"), password


def caller_of(callers: Callers, access_key_id: str, password: bytes) -> Caller:
    """Returns the caller whose key has this password as its secret, or raises."""
    secret, caller = callers.find(access_key_id, None, time())
    if not compare_digest(secret.encode(), password):
        raise unknown_key()
    return caller


def refusal(error: DynamoDBError) -> HttpResponse:
    """Returns the refusal of a page. The challenge makes browsers ask for a name and a password."""
    if isinstance(error, AccessDeniedException):
        return HttpResponse(HTTPStatus.FORBIDDEN, error_body(error), JSON)
    return HttpResponse(HTTPStatus.UNAUTHORIZED, error_body(error), JSON, CHALLENGE)
