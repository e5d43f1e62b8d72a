"""From a complete HTTP request to the operation it names, in AWS's order of checks.

Method and content type, JSON, target, credentials, then the operation's own validation. Any
credentials are accepted and no signature is verified; a request without any is refused, as AWS
refuses it. (Order and texts: recorded by dynalite's tests against AWS.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from partita.database.response_cache import ResponseCache
from partita.database.tables.stored import NO_LIMIT, TooMuchToDecode, decoding_budget
from partita.errors import (
    AccessDeniedException,
    DynamoDBError,
    IncompleteSignatureException,
    InternalServerError,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    MissingToken,
    SerializationException,
    UnknownOperationException,
)
from partita.limits import KB, MB
from partita.server.frames import rest_operation
from partita.server.http.hosts import Hosts
from partita.server.http.messages import JSON, Handle, HttpRequest, HttpResponse, Reply
from partita.server.metrics import CONTENT_TYPE, Metrics
from partita.server.notable import NO_COST, Cost, Notable
from partita.server.protocol import codec
from partita.server.protocol.envelope import error_body
from partita.server.protocol.model import KINESIS, TARGET_PREFIXES, target
from partita.server.protocol.validation import Request, Validator, compile_validators
from partita.server.responses import CBOR_1_1, JSON_1_0, JSON_1_1
from partita.server.rest import rest_error, service_at

logger = logging.getLogger(__name__)

Handler = Callable[[Any, Request], bytes]
"""`handler(context, request)`: the context is the database's own affair."""
PlainRead = Callable[[bytes, ResponseCache | None], bytes | None]
Done = Callable[[bytes | BaseException], None]
CheckNeeds = Callable[[Sequence[Any]], None]


class Database(Protocol):
    """What the dispatcher needs of the database."""

    def read(
        self,
        handler: Handler,
        request: Request,
        cache_key: bytes = b"",
        cache: ResponseCache | None = None,
    ) -> bytes:
        """Run a read at once; its answer may go into the cache, under its key."""

    def write(self, handler: Handler, request: Request, done: Done) -> None:
        """Run a write and call `done` with its answer, or its error, when it is durable."""

    def show(self, page: Handler, query: Request, done: Done) -> None:
        """Run what a page shows, and call `done` with it or with its error."""


class LargeRequests(Protocol):
    """Who decides what would keep all others waiting."""

    def forward(
        self,
        operation: str,
        body: bytes,
        decide_here: Callable[[], None],
        done: Done,
        check_needs: CheckNeeds | None = None,
    ) -> None: ...


class Admission(Protocol):
    """One who was let in, and whose rights are still to be checked; both raise without them."""

    def check_needs(self, needs: Sequence[Any]) -> None:
        """Needs that were worked out elsewhere."""

    def check_body(self, body: Request) -> None:
        """What a decoded request needs."""


class Denials(Protocol):
    """What policies deny to everybody, where nobody is asked who they are."""

    def check(self, request: HttpRequest, operation: str, body: Request) -> None: ...

    def admission(self, request: HttpRequest, operation: str) -> Admission | None: ...


class Companion(Protocol):
    """Who answers the requests of another service."""

    def forward(self, operation: bytes, body: bytes, reply: Reply) -> None: ...


HEALTHY: Final = b"healthy: dynamodb.us-east-1.amazonaws.com "
UNKNOWN_PATH: Final = HttpResponse(404, b"<UnknownOperationException/>\n", b"text/xml")
PUBLIC_PATHS: Final = (b"/", b"/ping", b"/health")
"""Where nothing is shown of the data."""
UNKNOWN_NAME: Final = "Unknown"
KINESIS_TARGET: Final = TARGET_PREFIXES[KINESIS].encode()
"""How the targets of Kinesis begin, the only service here that speaks JSON 1.1."""
INTERNAL_ERROR: Final = (
    "The request processing has failed because of an unknown error, exception or failure."
)

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


LARGE_BODY_BYTES: Final = 64 * KB
LARGE_BODY_QUOTES: Final = 40_000
"""What makes a body large is not its bytes but its values, each in quotes as its type is: these
take 20 ms to decode, check and encode."""
DECODED_BYTES_MAX: Final = MB
"""Of large items that are stored: these take as long."""
MAY_BE_LARGE: Final = frozenset(
    (
        "BatchExecuteStatement",
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "ExecuteStatement",
        "ExecuteTransaction",
        "PutItem",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    )
)


@dataclass(slots=True)
class Operation:
    """One operation of the registry, ready to be called."""

    name: str
    read: Handler | None
    write: Handler | None
    only_reads: Callable[[Request], bool] | None
    """Of what reads and writes: whether a request is for `read`, and waits for no commit."""
    validate: Validator
    cache: ResponseCache | None
    read_plainly: PlainRead | None
    """Answers the plainest form of its requests from their bytes; None to all others."""
    decoded_bytes_max: int
    """How much of large items may be decoded before others have waited long enough."""


class Dispatcher:
    """`dispatcher.handle` is what a Listener wants."""

    def __init__(
        self,
        database: Database,
        reads: Mapping[str, Handler],
        writes: Mapping[str, Handler],
        only_reads: Mapping[str, Callable[[Request], bool]] = {},
        pages: Mapping[str, Handler] = {},
        plain_reads: Mapping[str, PlainRead] = {},
        response_caches: Mapping[str, ResponseCache] = {},
        companions: Mapping[bytes, Companion] = {},
        hosts: Hosts | None = None,
        rest: Companion | None = None,
        large_requests: LargeRequests | None = None,
        sites: Mapping[bytes, Handle] = {},
    ) -> None:
        """`only_reads` tells which table answers a request for what is in both; `pages` are what
        GET shows besides the server's own, each given its query; `companions` answer the targets
        that begin with their names, and `rest` the services whose protocol is REST; pages with
        data are shown under names that `hosts` allows. Without `large_requests`, requests of any
        size are decided at once. `sites` answer what is asked below their first segment of a path,
        in types of their own: none of an operation's."""
        self.metrics = Metrics(response_caches)
        self.notable = Notable()
        self._database = database
        self._companions = companions
        self._rest = rest
        self._hosts = hosts
        self._large_requests = large_requests
        self._sites = sites
        self.denials: Denials | None = None
        validators = _validators(tuple({**reads, **writes}))
        self._operations = {
            target(name).encode(): Operation(
                name,
                reads.get(name),
                writes.get(name),
                only_reads.get(name),
                validators[name],
                response_caches.get(name),
                plain_reads.get(name),
                DECODED_BYTES_MAX if large_requests and name in MAY_BE_LARGE else NO_LIMIT,
            )
            for name in {**reads, **writes}
        }
        self._pages: dict[bytes, Callable[[], HttpResponse]] = {
            b"/": lambda: HttpResponse(200, HEALTHY, b"text/plain"),
            b"/ping": lambda: HttpResponse(200, HEALTHY, b"text/plain"),
            b"/health": lambda: HttpResponse(200, b'{"status":"ok"}', JSON),
            b"/metrics": lambda: HttpResponse(200, self.metrics.text().encode(), CONTENT_TYPE),
            b"/requests": lambda: HttpResponse(200, self.notable.page(), JSON),
        }
        self._database_pages = {path.encode(): page for path, page in pages.items()}

    def handle(self, request: HttpRequest, reply: Reply) -> None:
        if request.target != b"/" and self._rest is not None:
            service = service_at(request.target)
            if service is not None:
                self._forward_rest(self._rest, service, request, reply)
                return
        if request.method != b"POST":
            self.without_operation(request, reply)
            return
        content_type: bytes | None = request.headers.get(b"content-type", b"")
        if content_type != JSON_1_0:
            content_type = _json_type(content_type or b"")
        if content_type is None and request.body:
            self._handle_other_type(request, reply)
            return
        started = perf_counter()
        asked = request.headers.get(b"x-amz-target", b"")
        if content_type == JSON_1_1 and not asked.startswith(KINESIS_TARGET):
            reply(UNKNOWN_PATH)
            return
        operation = self._operations.get(asked)
        cost = NO_COST
        try:
            if operation is not None and operation.cache is not None:
                cached = operation.cache.get(request.body)
                if cached is not None:
                    self.admit_cached(request, operation)
                    response = HttpResponse(200, cached.body, content_type or JSON)
                    response.checksum = cached.checksum
                    self.metrics.observe(operation.name, 200, perf_counter() - started)
                    reply(response)
                    return
            if (
                len(request.body) > LARGE_BODY_BYTES
                and operation is not None
                and operation.decoded_bytes_max != NO_LIMIT
                and _has_many_values(request.body)
            ):
                admission = self.admit_large(request, operation)
                self._decide_elsewhere(operation, request, content_type, started, reply, admission)
                return
            if operation is not None and operation.read_plainly is not None:
                plain = operation.read_plainly(request.body, operation.cache)
                if plain is not None:
                    self.admit_cached(request, operation)
                    response = HttpResponse(200, plain, content_type or JSON)
                    seconds = perf_counter() - started
                    self.metrics.observe(operation.name, 200, seconds)
                    self.notable.finish(operation.name, 200, seconds, NO_COST, request.body)
                    reply(response)
                    return
            body = codec.decode(request.body) if request.body else None
            if operation is None:
                self._forward(asked, request, started, reply)
                return
            body = self.admit(request, operation, body)
            decoding_budget.bytes_left = operation.decoded_bytes_max
            cost = self.notable.begin()
            if operation.write and not (operation.only_reads and operation.only_reads(body)):
                done = self._answer_later(
                    operation.name, content_type or JSON, started, reply, cost, request.body
                )
                self._database.write(operation.write, body, done)
                return
            assert operation.read is not None
            answer = self._database.read(operation.read, body, request.body, operation.cache)
            response = HttpResponse(200, answer, content_type or JSON)
        except TooMuchToDecode:
            assert operation is not None
            self._decide_elsewhere(operation, request, content_type, started, reply)
            return
        except Exception as error:
            response = error_response(error, content_type or JSON)
        name = operation.name if operation else UNKNOWN_NAME
        seconds = perf_counter() - started
        self.metrics.observe(name, response.status, seconds)
        self.notable.finish(name, response.status, seconds, cost, request.body)
        reply(response)

    # Who is let in: here, everybody who has signed a request with whatever key.

    def admit(self, request: HttpRequest, operation: Operation, body: Request | None) -> Request:
        """The body of a request that the operation may be given; raises otherwise."""
        check_credentials(request)
        if body is None:
            raise SerializationException
        operation.validate(body)
        if self.denials is not None and operation.write is not None:
            self.denials.check(request, operation.name, body)
        return body

    def admit_cached(self, request: HttpRequest, operation: Operation) -> None:
        """The same for a request that is answered from its bytes: a plain one, or one that has been
        answered before, to whomever."""
        check_credentials(request)

    def admit_large(self, request: HttpRequest, operation: Operation) -> Admission | None:
        """The same for a request that is decoded elsewhere; what is asked for its rights there, if
        there is anything to ask for."""
        check_credentials(request)
        if self.denials is not None and operation.write is not None:
            return self.denials.admission(request, operation.name)
        return None

    def admit_forwarded(self, request: HttpRequest, service: bytes, operation: bytes) -> None:
        """The same for a request that a companion answers."""
        check_credentials(request)

    def admit_rest(self, request: HttpRequest, service: str) -> None:
        """The same for one whose protocol is REST."""
        try:
            check_credentials(request)
        except DynamoDBError as error:
            raise MissingToken(error.message) from None

    def _decide_elsewhere(
        self,
        operation: Operation,
        request: HttpRequest,
        content_type: bytes | None,
        started: float,
        reply: Reply,
        admission: Admission | None = None,
    ) -> None:
        """Without an admission, the request has been admitted already."""
        assert self._large_requests is not None
        body = request.body
        cost = self.notable.begin()
        done = self._answer_later(operation.name, content_type or JSON, started, reply, cost, body)

        def decide_here() -> None:
            try:
                decoded = codec.decode(body)
                operation.validate(decoded)
                if admission is not None:
                    admission.check_body(decoded)
                decoding_budget.bytes_left = NO_LIMIT
                if operation.write and not (operation.only_reads and operation.only_reads(decoded)):
                    self._database.write(operation.write, decoded, done)
                    return
                assert operation.read is not None
                done(self._database.read(operation.read, decoded))
            except Exception as error:
                done(error)

        check_needs = None if admission is None else admission.check_needs
        self._large_requests.forward(operation.name, body, decide_here, done, check_needs)

    def _handle_other_type(self, request: HttpRequest, reply: Reply) -> None:
        if request.headers.get(b"content-type") != CBOR_1_1:
            site = self._site(request)
            if site is None:
                reply(UNKNOWN_PATH)
            else:
                site(request, reply)
            return
        # Imported with the first that needs it.
        from partita.server.cbor import answer_in_cbor

        answer_in_cbor(self.handle, request, reply)

    def _forward(self, asked: bytes, request: HttpRequest, started: float, reply: Reply) -> None:
        service, _, name = asked.partition(b".")
        companion = self._companions.get(service)
        if companion is None:
            raise UnknownOperationException
        self.admit_forwarded(request, service, name)

        def answer(response: HttpResponse) -> None:
            self.metrics.observe(service.decode(), response.status, perf_counter() - started)
            reply(response)

        companion.forward(name, request.body, answer)

    def _forward_rest(
        self, companion: Companion, service: str, request: HttpRequest, reply: Reply
    ) -> None:
        started = perf_counter()

        def answer(response: HttpResponse) -> None:
            self.metrics.observe(service, response.status, perf_counter() - started)
            reply(response)

        try:
            self.admit_rest(request, service)
        except DynamoDBError as error:
            answer(rest_error(error))
        else:
            companion.forward(rest_operation(request), request.body, answer)

    def _answer_later(
        self,
        name: str,
        content_type: bytes,
        started: float,
        reply: Reply,
        cost: Cost,
        body: bytes,
    ) -> Done:
        def done(result: bytes | BaseException) -> None:
            if isinstance(result, bytes):
                response = HttpResponse(200, result, content_type)
            else:
                response = error_response(result, content_type)
            seconds = perf_counter() - started
            self.metrics.observe(name, response.status, seconds)
            self.notable.finish(name, response.status, seconds, cost, body)
            reply(response)

        return done

    def _site(self, request: HttpRequest) -> Handle | None:
        first = request.target.partition(b"?")[0].split(b"/", 2)[1:2]
        return self._sites.get(first[0]) if first else None

    def without_operation(self, request: HttpRequest, reply: Reply) -> None:
        if request.method not in (b"GET", b"HEAD"):
            reply(UNKNOWN_PATH)
            return
        path = request.target.partition(b"?")[0]
        host = request.headers.get(b"host")
        if (
            host is not None
            and path not in PUBLIC_PATHS
            and self._hosts is not None
            and not self._hosts.allows_data(host)
        ):
            error = AccessDeniedException(self._hosts.refusal(host))
            reply(HttpResponse(HTTPStatus.MISDIRECTED_REQUEST, error_body(error), JSON))
            return
        site = self._site(request)
        if site is None:
            self._show(path, request.target, reply)
        else:
            site(request, reply)

    def _show(self, path: bytes, target: bytes, reply: Reply) -> None:
        own, of_database = self._pages.get(path), self._database_pages.get(path)
        if of_database is None:
            reply(own() if own else UNKNOWN_PATH)
            return

        def done(content: bytes | BaseException) -> None:
            if not isinstance(content, bytes):
                reply(error_response(content, JSON))
            elif own is None:
                reply(HttpResponse(200, content, JSON))
            else:
                # What the database adds to a page of the server.
                response = own()
                response.body += content
                reply(response)

        self._database.show(of_database, _query(target), done)


@cache
def _validators(operations: tuple[str, ...]) -> dict[str, Validator]:
    """Compiled once for all dispatchers of a process: it takes longer than all else of them."""
    return compile_validators(operations)


def _has_many_values(body: bytes) -> bool:
    quotes = 0
    for start in range(0, len(body), MB):
        quotes += body.count(b'"', start, start + MB)
        if quotes > LARGE_BODY_QUOTES:
            return True
    return False


@lru_cache(maxsize=256)
def _json_type(content_type: bytes) -> bytes | None:
    """Which type of JSON a request has; the answer has the same."""
    media_type = content_type.partition(b";")[0].strip()
    return media_type if media_type in (JSON, JSON_1_0, JSON_1_1) else None


def error_response(error: BaseException, content_type: bytes) -> HttpResponse:
    if not isinstance(error, DynamoDBError):
        logger.error("An operation failed unexpectedly", exc_info=error)
        error = InternalServerError(INTERNAL_ERROR)
    body = error_body(error, is_qualified=content_type != JSON_1_1)
    return HttpResponse(error.status, body, content_type)


def check_credentials(request: HttpRequest) -> None:
    """Whether a signature is there, in the header or in the query; never whether it is right."""
    authorization = request.headers.get(b"authorization")
    is_in_query = request.target != b"/" and "X-Amz-Algorithm" in _query(request.target)
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


def _query(target: bytes) -> dict[str, str]:
    query = target.partition(b"?")[2].decode("latin-1")
    return dict(parse_qsl(query, keep_blank_values=True))


def _check_query_parts(target: bytes) -> None:
    given = {name for name, value in _query(target).items() if value}
    missing = [part for part in QUERY_PARTS if part not in given]
    if missing:
        text = "".join(f"AWS query-string parameters must include '{part}'. " for part in missing)
        raise IncompleteSignatureException(text + "Re-examine the query-string parameters.")
