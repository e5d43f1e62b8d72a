"""The dispatcher: finds the operation of a complete HTTP request, and checks it in AWS's order.

The order is: method and content type, JSON, target, credentials, then the operation's validation.
Any credentials are accepted and no signature is verified, but a request without credentials is
refused, as on AWS. `security/authorization_gate.py` has the dispatcher that verifies signatures.
(Order and texts: recorded by dynalite's tests against AWS.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final, Protocol

from partita.database.execution.database_interface import DatabaseInterface, Done
from partita.database.execution.response_cache import ResponseCache
from partita.database.operations.operation_context import PermittedBytes, PermittedRequest
from partita.database.tables.stored_item import NO_LIMIT, TooMuchToDecode, decoding_budget
from partita.errors import (
    AccessDeniedException,
    DynamoDBError,
    InternalServerError,
    SerializationException,
    UnknownOperationException,
)
from partita.foundation.prometheus_text import CONTENT_TYPE
from partita.foundation.service_limits import KB, MB
from partita.server.admission import Admission, AnyCaller, Forwarded, PolicyDenials, query_of
from partita.server.http.host_header import AllowedHosts
from partita.server.http.http_messages import JSON, HttpRequest, HttpResponse, Reply
from partita.server.monitoring.server_metrics import ServerMetrics
from partita.server.monitoring.slow_requests import NO_COST, RequestCost, SlowRequests
from partita.server.protocol import json_codec
from partita.server.protocol.aws_responses import CBOR_1_1, JSON_1_0, JSON_1_1, error_body
from partita.server.protocol.request_validation import Request, Validator, compile_validators
from partita.server.protocol.rest import rest_error, rest_operation, service_at
from partita.server.protocol.service_model import KINESIS, TARGET_PREFIXES, target

logger = logging.getLogger(__name__)

Handler = Callable[[Any, Request], bytes]
"""`handler(context, request)` returns the response. Only the database knows the context's type."""
PlainRead = Callable[[PermittedBytes, ResponseCache | None], bytes | None]


class LargeRequestForwarder(Protocol):
    """Decides large requests elsewhere, so that they do not block all others."""

    def forward(
        self,
        operation: str,
        body: bytes,
        admission: Admission,
        decide_here: Callable[[], None],
        done: Done,
    ) -> None:
        """Has a request decided elsewhere, with the rights of its admission. Calls `done` with the
        response or error, or `decide_here` if the request cannot be decided elsewhere."""


class SignInSite(Protocol):
    """Pages that have their own way to sign in, such as the console."""

    def handle(self, request: HttpRequest, reply: Reply) -> None: ...

    def knows(self, request: HttpRequest) -> bool:
        """True if the head of a request shows that its sender has signed in."""


class Companion(Protocol):
    """Answers the requests of another service, usually in another process."""

    def forward(self, forwarded: Forwarded, reply: Reply) -> None: ...


HEALTHY: Final = b"healthy: dynamodb.us-east-1.amazonaws.com "
UNKNOWN_PATH: Final = HttpResponse(404, b"<UnknownOperationException/>\n", b"text/xml")
PUBLIC_PATHS: Final = (b"/", b"/ping", b"/health")
"""Pages that show no data, so that everybody may see them."""
UNKNOWN_NAME: Final = "Unknown"
KINESIS_TARGET: Final = TARGET_PREFIXES[KINESIS].encode()
"""The prefix of Kinesis's targets. Only Kinesis uses JSON 1.1 here."""
INTERNAL_ERROR: Final = (
    "The request processing has failed because of an unknown error, exception or failure."
)

LARGE_BODY_BYTES: Final = 64 * KB
LARGE_BODY_QUOTES: Final = 40_000
"""A body with more quotes is large: its cost depends on the number of its values, and each value
and type is in quotes. This many take 20 ms to decode, check and encode."""
DECODED_BYTES_MAX: Final = MB
"""A request that decodes more bytes of stored items is large: this many take as long."""
TEXT_CHARS_MAX: Final = 16 * KB
"""A request with more text in different statements and expressions is large: compiling this much
takes 100 ms."""
PARTS: Final = ("Statements", "TransactStatements", "TransactItems")
"""Members that have a statement or expressions for each part of a request."""
HAS_PARTS: Final = frozenset(
    ("BatchExecuteStatement", "ExecuteTransaction", "TransactGetItems", "TransactWriteItems")
)
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
class DispatchedOperation:
    """An operation of the registry, with its validator and limits."""

    name: str
    read: Handler | None
    write: Handler | None
    only_reads: Callable[[Request], bool] | None
    """For an operation with both handlers: True if a request only reads, so that `read` answers it
    without waiting for a commit."""
    decode: Callable[[bytes], Request]
    validate: Validator
    cache: ResponseCache | None
    read_plainly: PlainRead | None
    """Answers simple requests without decoding them; returns None for all others."""
    decoded_bytes_max: int
    """The number of bytes of stored items at which a request becomes a large one."""
    text_chars_max: int
    """The number of characters of statements and expressions at which it becomes a large one."""
    may_be_plain: bool
    """True if some requests may be answered without decoding them."""

    def writes(self, request: Request) -> bool:
        """True if `write` answers a request."""
        if self.write is None:
            return False
        return self.only_reads is None or not self.only_reads(request)


class Dispatcher:
    """Dispatches requests to operations, companions and pages. A Listener calls `handle`."""

    def __init__(
        self,
        database: DatabaseInterface,
        reads: Mapping[str, Handler],
        writes: Mapping[str, Handler],
        only_reads: Mapping[str, Callable[[Request], bool]] = {},
        pages: Mapping[str, Handler] = {},
        table_pages: Mapping[str, Handler] = {},
        plain_reads: Mapping[str, PlainRead] = {},
        response_caches: Mapping[str, ResponseCache] = {},
        companions: Mapping[bytes, Companion] = {},
        hosts: AllowedHosts | None = None,
        rest: Companion | None = None,
        large_requests: LargeRequestForwarder | None = None,
        sites: Mapping[bytes, SignInSite] = {},
        shares_tables: bool = False,
    ) -> None:
        """`only_reads` decides between the handlers of an operation that is in both `reads` and
        `writes`. GET shows `pages` about the server and `table_pages` about stored data in
        addition to the server's own. `companions` answer targets that begin with their names, and
        `rest` answers services in AWS's REST protocol. Pages with data are only shown under host
        names that `hosts` allows. Without `large_requests`, requests of any size are decided at
        once. `sites` answer requests whose path begins with their name, unless the content type is
        that of an operation. With `shares_tables`, other servers may change the same tables, and
        rights are checked again after they did."""
        self.metrics = ServerMetrics(response_caches)
        self.notable = SlowRequests()
        self._database = database
        self._companions = companions
        self._rest = rest
        self._hosts = hosts
        self._large_requests = large_requests
        self._sites = sites
        self._shares_tables = shares_tables
        self.policies: PolicyDenials | None = None
        validators = _validators(tuple({**reads, **writes}))
        self._operations = {
            target(name).encode(): DispatchedOperation(
                name,
                reads.get(name),
                writes.get(name),
                only_reads.get(name),
                json_codec.decode_large if name in MAY_BE_LARGE else json_codec.decode,
                validators[name],
                response_caches.get(name),
                plain_reads.get(name),
                DECODED_BYTES_MAX if large_requests and name in MAY_BE_LARGE else NO_LIMIT,
                TEXT_CHARS_MAX if large_requests and name in HAS_PARTS else NO_LIMIT,
                name in response_caches or name in plain_reads,
            )
            for name in {**reads, **writes}
        }
        self._pages: dict[bytes, Callable[[], HttpResponse]] = {
            b"/": lambda: HttpResponse(200, HEALTHY, b"text/plain"),
            b"/ping": lambda: HttpResponse(200, HEALTHY, b"text/plain"),
            b"/health": lambda: HttpResponse(200, b'{"status":"ok"}', JSON),
            b"/metrics": self._metrics_page,
            b"/requests": lambda: HttpResponse(200, self.notable.page(), JSON),
        }
        self._database_pages = {path.encode(): page for path, page in pages.items()}
        self._table_pages = {path.encode(): page for path, page in table_pages.items()}

    def _metrics_page(self) -> HttpResponse:
        return HttpResponse(200, self.metrics.text().encode(), CONTENT_TYPE.encode())

    def handle(self, request: HttpRequest, reply: Reply) -> None:
        """Handles a request without authentication."""
        self.handle_admitted(request, reply, AnyCaller(request, self.policies))

    def handle_admitted(self, request: HttpRequest, reply: Reply, admission: Admission) -> None:
        if request.target != b"/" and self._rest is not None:
            service = service_at(request.target)
            if service is not None:
                self._forward_rest(self._rest, service, request, reply, admission)
                return
        if request.method != b"POST":
            self.without_operation(request, reply, admission)
            return
        content_type: bytes | None = request.headers.get(b"content-type", b"")
        if content_type != JSON_1_0:
            content_type = json_type(content_type or b"")
        if content_type is None and request.body:
            self._handle_other_type(request, reply, admission)
            return
        started = perf_counter()
        target_header = request.headers.get(b"x-amz-target", b"")
        if content_type == JSON_1_1 and not target_header.startswith(KINESIS_TARGET):
            reply(UNKNOWN_PATH)
            return
        operation = self._operations.get(target_header)
        cost = NO_COST
        try:
            if operation is not None and operation.may_be_plain:
                permitted_bytes = admission.permit_bytes(operation.name, request.body)
                if permitted_bytes is not None and self._answer_from_bytes(
                    operation, permitted_bytes, content_type or JSON, started, reply
                ):
                    return
            if (
                len(request.body) > LARGE_BODY_BYTES
                and operation is not None
                and operation.decoded_bytes_max != NO_LIMIT
                and _has_many_values(request.body)
            ):
                admission.check_credentials()
                self._decide_elsewhere(operation, request, content_type, started, reply, admission)
                return
            decode = json_codec.decode if operation is None else operation.decode
            body = decode(request.body) if request.body else None
            if operation is None:
                self._forward(target_header, request, started, reply, admission)
                return
            admission.check_credentials()
            permitted = self._permitted(operation, body, admission, operation.text_chars_max)
            decoding_budget.bytes_left = operation.decoded_bytes_max
            cost = self.notable.begin()
            if operation.writes(permitted.request):
                assert operation.write is not None
                done = self._answer_later(
                    operation.name, content_type or JSON, started, reply, cost, request.body
                )
                self._database.write(operation.write, permitted, done)
                return
            assert operation.read is not None
            answer = self._database.read(operation.read, permitted, request.body, operation.cache)
            if not isinstance(answer, bytes):
                answer(
                    self._answer_later(
                        operation.name, content_type or JSON, started, reply, cost, request.body
                    )
                )
                return
            response = HttpResponse(200, answer, content_type or JSON)
        except TooMuchToDecode:
            assert operation is not None
            self._decide_elsewhere(operation, request, content_type, started, reply, admission)
            return
        except Exception as error:
            response = error_response(error, content_type or JSON)
        name = operation.name if operation else UNKNOWN_NAME
        seconds = perf_counter() - started
        self.metrics.observe(name, response.status, seconds)
        self.notable.finish(name, response.status, seconds, cost, request.body)
        reply(response)

    def _permitted(
        self,
        operation: DispatchedOperation,
        body: Request | None,
        admission: Admission,
        chars_max: int,
    ) -> PermittedRequest:
        """Validates a request and checks its caller's rights, or raises.

        Raises TooMuchToDecode for longer statements, so that they are decided elsewhere: they must
        be compiled before their rights are known.
        """
        if body is None:
            raise SerializationException
        operation.validate(body)
        if chars_max != NO_LIMIT and _text_chars(body) > chars_max:
            raise TooMuchToDecode
        permitted = admission.permit(operation.name, body)
        if self._shares_tables:
            permitted.again = partial(admission.permit, operation.name, body)
        return permitted

    def _answer_from_bytes(
        self,
        operation: DispatchedOperation,
        body: PermittedBytes,
        content_type: bytes,
        started: float,
        reply: Reply,
    ) -> bool:
        """Answers a read from the response cache or by its plain form. Returns False if neither is
        possible."""
        cache = operation.cache
        cached = None if cache is None else cache.get(body)
        if cached is not None:
            response = HttpResponse(200, cached.body, content_type)
            response.checksum = cached.checksum
            self.metrics.observe(operation.name, 200, perf_counter() - started)
            reply(response)
            return True
        plain = None if operation.read_plainly is None else operation.read_plainly(body, cache)
        if plain is None:
            return False
        seconds = perf_counter() - started
        self.metrics.observe(operation.name, 200, seconds)
        self.notable.finish(operation.name, 200, seconds, NO_COST, body)
        reply(HttpResponse(200, plain, content_type))
        return True

    def _decide_elsewhere(
        self,
        operation: DispatchedOperation,
        request: HttpRequest,
        content_type: bytes | None,
        started: float,
        reply: Reply,
        admission: Admission,
    ) -> None:
        assert self._large_requests is not None
        body = request.body
        cost = self.notable.begin()
        done = self._answer_later(operation.name, content_type or JSON, started, reply, cost, body)

        def decide_here() -> None:
            try:
                decoded = operation.decode(body)
                permitted = self._permitted(operation, decoded, admission, NO_LIMIT)
                decoding_budget.bytes_left = NO_LIMIT
                if operation.writes(permitted.request):
                    assert operation.write is not None
                    self._database.write(operation.write, permitted, done)
                    return
                assert operation.read is not None
                answer = self._database.read(operation.read, permitted)
                if isinstance(answer, bytes):
                    done(answer)
                else:
                    answer(done)
            except Exception as error:
                done(error)

        self._large_requests.forward(operation.name, body, admission, decide_here, done)

    def _handle_other_type(self, request: HttpRequest, reply: Reply, admission: Admission) -> None:
        if request.headers.get(b"content-type") != CBOR_1_1:
            site = self._site(request)
            if site is None:
                reply(UNKNOWN_PATH)
            else:
                site.handle(request, reply)
            return
        # Imported on first use: most servers never get a request in CBOR.
        from partita.server.protocol.cbor import answer_in_cbor

        def handle(json_request: HttpRequest, answer: Reply) -> None:
            self.handle_admitted(json_request, answer, admission)

        answer_in_cbor(handle, request, reply)

    def _forward(
        self,
        target_header: bytes,
        request: HttpRequest,
        started: float,
        reply: Reply,
        admission: Admission,
    ) -> None:
        service, _, name = target_header.partition(b".")
        companion = self._companions.get(service)
        if companion is None:
            raise UnknownOperationException
        forwarded = admission.forward(service, name, request.body)

        def answer(response: HttpResponse) -> None:
            self.metrics.observe(service.decode(), response.status, perf_counter() - started)
            reply(response)

        companion.forward(forwarded, answer)

    def _forward_rest(
        self,
        companion: Companion,
        service: str,
        request: HttpRequest,
        reply: Reply,
        admission: Admission,
    ) -> None:
        started = perf_counter()

        def answer(response: HttpResponse) -> None:
            self.metrics.observe(service, response.status, perf_counter() - started)
            reply(response)

        try:
            forwarded = admission.forward_rest(service, rest_operation(request), request)
        except DynamoDBError as error:
            answer(rest_error(error))
        else:
            companion.forward(forwarded, answer)

    def _answer_later(
        self,
        name: str,
        content_type: bytes,
        started: float,
        reply: Reply,
        cost: RequestCost,
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

    def _site(self, request: HttpRequest) -> SignInSite | None:
        first = request.target.partition(b"?")[0].split(b"/", 2)[1:2]
        return self._sites.get(first[0]) if first else None

    def without_operation(self, request: HttpRequest, reply: Reply, admission: Admission) -> None:
        """Answers with a page, a site, or a 404. Raises if the caller may not see the page."""
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
            self._show(path, request.target, reply, admission)
        else:
            site.handle(request, reply)

    def _show(self, path: bytes, target: bytes, reply: Reply, admission: Admission) -> None:
        own = self._pages.get(path)
        of_database, of_tables = self._database_pages.get(path), self._table_pages.get(path)
        if path in PUBLIC_PATHS:
            assert own is not None
            reply(own())
            return
        permitted = admission.permit_page(path, query_of(target))
        if of_database is None and of_tables is None:
            reply(own() if own else UNKNOWN_PATH)
            return

        def done(content: bytes | BaseException) -> None:
            if not isinstance(content, bytes):
                reply(error_response(content, JSON))
            elif own is None:
                reply(HttpResponse(200, content, JSON))
            else:
                # /metrics has a part of the server and a part of the database.
                response = own()
                response.body += content
                reply(response)

        try:
            if of_tables is not None:
                content = self._database.read(of_tables, permitted)
            else:
                assert of_database is not None
                content = self._database.read_now(of_database, permitted)
        except Exception as error:
            done(error)
            return
        if isinstance(content, bytes):
            done(content)
        else:
            content(done)


def _text_chars(request: Request) -> int:
    """Returns the length of all different statements and expressions, which must be compiled."""
    texts: set[str] = set()
    for member in PARTS:
        for part in request.get(member, ()):
            for name, value in part.items():
                if name == "Statement":
                    texts.add(value)
                elif type(value) is dict:
                    texts |= {text for key, text in value.items() if key.endswith("Expression")}
    return sum(map(len, texts))


@cache
def _validators(operations: tuple[str, ...]) -> dict[str, Validator]:
    """Compiles the validators once for all dispatchers of a process, because that is slow."""
    return compile_validators(operations)


def _has_many_values(body: bytes) -> bool:
    if json_codec.has_many_values(body):
        return True
    quotes = 0
    for start in range(0, len(body), MB):
        quotes += body.count(b'"', start, start + MB)
        if quotes > LARGE_BODY_QUOTES:
            return True
    return False


@lru_cache(maxsize=256)
def json_type(content_type: bytes) -> bytes | None:
    """Returns the JSON type of a content type, without parameters, or None. The response has the
    same type."""
    media_type = content_type.partition(b";")[0].strip()
    return media_type if media_type in (JSON, JSON_1_0, JSON_1_1) else None


def error_response(error: BaseException, content_type: bytes) -> HttpResponse:
    if not isinstance(error, DynamoDBError):
        logger.error("An operation failed unexpectedly", exc_info=error)
        error = InternalServerError(INTERNAL_ERROR)
    body = error_body(error, is_qualified=content_type != JSON_1_1)
    return HttpResponse(error.status, body, content_type)
