"""Admission: what the caller of one request may do. It accompanies the request wherever it goes.

A dispatcher makes an admission before it looks at the body of a request. Operations, pages and
companions only accept what an admission has permitted. So there is no path around the rights of
the caller, not even for requests that another process decides, that are decided twice, or that are
forwarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from partita.database.operations.operation_context import PermittedBytes, PermittedRequest, Request
from partita.errors import (
    DynamoDBError,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    MissingToken,
)
from partita.server.http.http_messages import HttpRequest

MISSING_TOKEN: Final = "Request is missing Authentication Token"
BOTH_SIGNATURES: Final = (
    "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
)
HEADER_PARTS: Final = ("Credential", "Signature", "SignedHeaders")
DATE_REQUIRED: Final = (
    "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
)
QUERY_PARTS: Final = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)
QUERY_PARAMETERS_MAX: Final = 200
"""A limit of Partita's own. All parameters are sorted before a signature is verified, which would
give unauthenticated clients a way to use up time; no real request has as many."""
TOO_MANY_PARAMETERS: Final = f"A query may have at most {QUERY_PARAMETERS_MAX} parameters."

Parts = Sequence[Sequence[Any]]
"""The needs of a request (`security/rights/requested_rights.py`), for each part that can be denied
separately. Only BatchExecuteStatement has more than one part."""
Denial = DynamoDBError | None


class Forwarded:
    """A request to a companion that its caller is permitted to make."""

    __slots__ = ("body", "operation")

    def __init__(self, operation: bytes, body: bytes) -> None:
        self.operation = operation
        self.body = body


class Admission:
    """The admission of an unknown caller, who is permitted nothing; base class of the others."""

    @property
    def is_open(self) -> bool:
        """True when no rights need to be checked."""
        return False

    @property
    def whose(self) -> str:
        """Identifies the caller where callers take turns: their access key id, or ""."""
        return ""

    def check_credentials(self) -> None:
        """Raises if the request has no credentials. AWS checks this after the JSON of the body."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def permit_bytes(self, operation: str, body: bytes) -> PermittedBytes | None:
        """Permits a read that may be answered without decoding it.

        Returns None if the request must go through `permit`, which refuses in AWS's order.
        """
        return None

    def permit(self, operation: str, request: Request) -> PermittedRequest:
        """Permits a decoded request, or raises."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def denials(self, parts: Parts) -> list[Denial]:
        """Returns for each part why it is denied, or None. Another process worked out the needs."""
        return [MissingAuthenticationTokenException(MISSING_TOKEN)] * len(parts)

    def forward(self, service: bytes, operation: bytes, body: bytes) -> Forwarded:
        """Permits a request that a companion answers, or raises."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def forward_rest(self, service: str, operation: bytes, request: HttpRequest) -> Forwarded:
        """Permits a request in AWS's REST protocol that a companion answers, or raises."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def permit_page(self, path: bytes, query: Request) -> PermittedRequest:
        """Permits a request for a page about the server, or raises."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)


NOBODY: Final = Admission()


class PolicyDenials(Protocol):
    """Denials by policies of tables, on a server that does not authenticate its callers."""

    @property
    def are_there(self) -> bool: ...

    def permit(self, head: HttpRequest, operation: str, request: Request) -> PermittedRequest: ...

    def denials(self, head: HttpRequest, parts: Parts) -> list[Denial]: ...


class AnyCaller(Admission):
    """The admission of any caller, on a server without `--auth`.

    A request must have a signature, as on AWS, but the signature is not verified. `policies` may
    still deny some requests to everybody.
    """

    def __init__(self, head: HttpRequest, policies: PolicyDenials | None) -> None:
        self._head = head
        self._policies = policies

    @property
    def is_open(self) -> bool:
        return self._policies is None or not self._policies.are_there

    def check_credentials(self) -> None:
        check_credentials(self._head)

    def permit_bytes(self, operation: str, body: bytes) -> PermittedBytes | None:
        if not self.is_open:
            return None
        try:
            check_credentials(self._head)
        except DynamoDBError:
            return None
        return PermittedBytes(body)

    def permit(self, operation: str, request: Request) -> PermittedRequest:
        policies = self._policies
        if policies is None or not policies.are_there:
            return PermittedRequest(request)
        return policies.permit(self._head, operation, request)

    def denials(self, parts: Parts) -> list[Denial]:
        policies = self._policies
        return [None] * len(parts) if policies is None else policies.denials(self._head, parts)

    def forward(self, service: bytes, operation: bytes, body: bytes) -> Forwarded:
        check_credentials(self._head)
        return Forwarded(operation, body)

    def forward_rest(self, service: str, operation: bytes, request: HttpRequest) -> Forwarded:
        try:
            check_credentials(self._head)
        except DynamoDBError as error:
            raise MissingToken(error.message) from None
        return Forwarded(operation, request.body)

    def permit_page(self, path: bytes, query: Request) -> PermittedRequest:
        return PermittedRequest(query)


def check_credentials(request: HttpRequest) -> None:
    """Raises unless the request has a signature in its header or its query.

    The signature is not verified.
    """
    authorization = request.headers.get(b"authorization")
    if request.target.count(b"&") >= QUERY_PARAMETERS_MAX:
        raise IncompleteSignatureException(TOO_MANY_PARAMETERS)
    is_in_query = request.target != b"/" and "X-Amz-Algorithm" in query_of(request.target)
    if authorization is not None and is_in_query:
        raise InvalidSignatureException(BOTH_SIGNATURES)
    if is_in_query:
        _check_query_parts(request.target)
    elif authorization is None or not authorization.startswith(b"AWS4-"):
        raise MissingAuthenticationTokenException(MISSING_TOKEN)
    else:
        _check_header_parts(authorization, request.headers)


def _check_header_parts(authorization: bytes, headers: Mapping[bytes, bytes]) -> None:
    # Without the signature, which comes last, the header is the same for all requests of a client
    # on one day, so the cache of `_missing_parts` has it.
    missing = _missing_parts(authorization[: authorization.rfind(b"=") + 1])
    if b"x-amz-date" not in headers and b"date" not in headers:
        missing += DATE_REQUIRED
    if missing:
        text = f"{missing}Authorization={authorization.decode('latin-1')}"
        raise IncompleteSignatureException(text)


@lru_cache(maxsize=256)
def _missing_parts(authorization: bytes) -> str:
    return "".join(
        f"Authorization header requires '{part}' parameter. "
        for part in HEADER_PARTS
        if f"{part}=".encode() not in authorization
    )


def query_of(target: bytes) -> dict[str, str]:
    query = target.partition(b"?")[2].decode("latin-1")
    return dict(parse_qsl(query, keep_blank_values=True))


def _check_query_parts(target: bytes) -> None:
    present = {name for name, value in query_of(target).items() if value}
    missing = [part for part in QUERY_PARTS if part not in present]
    if missing:
        text = "".join(f"AWS query-string parameters must include '{part}'. " for part in missing)
        raise IncompleteSignatureException(text + "Re-examine the query-string parameters.")
