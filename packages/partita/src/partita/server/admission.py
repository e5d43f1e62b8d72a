"""Who may do what: the admission of one request, a value that goes with it wherever it is decided.

A dispatcher makes an admission before it looks at the body of a request. Operations, pages and
companions take only what an admission has permitted, so that no path to them (a request that is
handed over, decided twice, or forwarded) leads past the rights of its caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from partita.database.operations.context import Permitted, PermittedBytes, Request
from partita.errors import (
    DynamoDBError,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    MissingToken,
)
from partita.server.http.messages import HttpRequest

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
"""Ours: nobody needs as many, and before a signature is verified all of them are sorted."""
TOO_MANY_PARAMETERS: Final = f"A query has up to {QUERY_PARAMETERS_MAX} parameters."

Parts = Sequence[Sequence[Any]]
"""The needs of a request (`security/rights/needs.py`), by the parts of it that are refused each on
its own: of all operations but BatchExecuteStatement there is one."""
Denial = DynamoDBError | None


class Forwarded:
    """A request that its caller may make of a companion."""

    __slots__ = ("body", "operation")

    def __init__(self, operation: bytes, body: bytes) -> None:
        self.operation = operation
        self.body = body


class Admission:
    """That of nobody in particular, to whom nothing is permitted."""

    @property
    def is_open(self) -> bool:
        """True when nobody's rights have to be asked for."""
        return False

    @property
    def whose(self) -> str:
        """The key of the caller, where callers take turns."""
        return ""

    def check_credentials(self) -> None:
        """Raises where AWS refuses a request for its credentials, which comes after its JSON."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def permit_bytes(self, operation: str, body: bytes) -> PermittedBytes | None:
        """For a read that may be answered from its bytes. None leaves it to `permit`, which says
        what is wrong, in AWS's order."""
        return None

    def permit(self, operation: str, request: Request) -> Permitted:
        """For a decoded request; raises unless the caller may make it."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def denials(self, parts: Parts) -> list[Denial]:
        """For a request whose needs were worked out elsewhere: why each part is denied, if so."""
        return [MissingAuthenticationTokenException(MISSING_TOKEN)] * len(parts)

    def forward(self, service: bytes, operation: bytes, body: bytes) -> Forwarded:
        """For a request that a companion answers; raises unless the caller may make it."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def forward_rest(self, service: str, operation: bytes, request: HttpRequest) -> Forwarded:
        """The same for one whose protocol is REST."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)

    def permit_page(self, path: bytes, query: Request) -> Permitted:
        """For a page about the server; raises unless the caller may see it."""
        raise MissingAuthenticationTokenException(MISSING_TOKEN)


NOBODY: Final = Admission()


class PolicyDenials(Protocol):
    """What policies of tables deny to everybody, where nobody is asked who they are."""

    @property
    def are_there(self) -> bool: ...

    def permit(self, head: HttpRequest, operation: str, request: Request) -> Permitted: ...

    def denials(self, head: HttpRequest, parts: Parts) -> list[Denial]: ...


class AnyCaller(Admission):
    """Of whoever has signed a request with whatever key, on a server that asks nobody for rights.

    Signatures must be there, and are not verified. `policies` may still deny something to all.
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

    def permit(self, operation: str, request: Request) -> Permitted:
        policies = self._policies
        if policies is None or not policies.are_there:
            return Permitted(request)
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

    def permit_page(self, path: bytes, query: Request) -> Permitted:
        return Permitted(query)


# Whether a signature is there


def check_credentials(request: HttpRequest) -> None:
    """Whether a signature is there, in the header or in the query; never whether it is right."""
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
    # All but the signature itself, which comes last, is the same for all requests of a client.
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
    given = {name for name, value in query_of(target).items() if value}
    missing = [part for part in QUERY_PARTS if part not in given]
    if missing:
        text = "".join(f"AWS query-string parameters must include '{part}'. " for part in missing)
        raise IncompleteSignatureException(text + "Re-examine the query-string parameters.")
