"""The gate: a dispatcher that lets in what is signed by a known key, and allowed by policies.

Who signed is settled before anything is looked at; errors still come in AWS's order, which reads
the JSON and the target first. No decision is remembered: the next request is decided anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Any, Final

from partita.database.operations.context import Service
from partita.database.operations.partiql.batches import REFUSAL
from partita.errors import (
    AccessDeniedException,
    DynamoDBError,
    ExpiredTokenException,
    Forbidden,
    IncompleteSignatureException,
    InternalServerError,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    SerializationException,
    UnknownRoute,
    UnrecognizedClientException,
)
from partita.server.dispatch import (
    INTERNAL_ERROR,
    LARGE_BODY_BYTES,
    MISSING_TOKEN,
    PUBLIC_PATHS,
    Companion,
    Dispatcher,
    Operation,
    check_credentials,
    error_response,
)
from partita.server.frames import rest_operation
from partita.server.http.messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol import codec
from partita.server.protocol.model import LAMBDA, SCHEDULER
from partita.server.responses import JSON_1_0
from partita.server.rest import (
    Asked,
    Routes,
    function_at,
    is_location,
    rest_error,
    service_at,
)
from partita.server.security import pages
from partita.server.security.audit.recorder import Recorder
from partita.server.security.audit.subjects import Subjects
from partita.server.security.authentication import sts
from partita.server.security.authentication.signatures import (
    ALGORITHM,
    SIGNATURE,
    Verifier,
    canonical_query,
    check_service,
    parse,
    parse_query,
    request_date,
)
from partita.server.security.identities import roles
from partita.server.security.identities.callers import Caller, Callers, unknown_key
from partita.server.security.limits import Limits
from partita.server.security.policies.decision import Request, decide, denial
from partita.server.security.rights import items, service_tables
from partita.server.security.rights.functions import function_arn
from partita.server.security.rights.needs import Keys, Need, Rights

logger = logging.getLogger(__name__)

SIGNING_NAMES: Final = {
    b"DynamoDB_20120810": "dynamodb",
    b"DynamoDBStreams_20120810": "dynamodb",
    b"Kinesis_20131202": "kinesis",
    b"AWSStepFunctions": "states",
    b"PartitaAccess": "partita",
    b"PartitaBackup": "partita",
    b"PartitaRights": "partita",
}
"""What credentials are scoped to, by how targets begin."""
FORM: Final = b"application/x-www-form-urlencoded"
REFUSALS: Final = (
    AccessDeniedException,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)
"""Of one who is not known, or may not."""
CODE: Final = "GetFunctionCode"
"""What the audit log calls a download of a function's code; AWS has no operation for it."""
EACH_ALONE: Final = "BatchExecuteStatement"
"""The operation whose parts are refused each on its own."""
NO_RIGHTS: Final = "{} has no rights that could be granted."


class RequestContext:
    """The condition keys of one need, looked up when a policy asks for them."""

    __slots__ = ("_caller", "_computed", "_need", "_request", "_service")

    def __init__(self, caller: Caller, service: Service, request: HttpRequest, need: Need) -> None:
        self._caller = caller
        self._service = service
        self._request = request
        self._need = need
        self._computed: Keys | None = None

    def get(self, key: str, /) -> Sequence[str] | None:
        values = self._caller.keys.get(key)
        if values is not None:
            return values
        of_request = GLOBAL_KEYS.get(key)
        if of_request is not None:
            return of_request(self._service, self._request)
        if self._computed is None:
            self._computed = self._need.keys()
        return self._computed.get(key)


def _source_ip(service: Service, request: HttpRequest) -> Sequence[str] | None:
    return (request.peer.address,) if request.peer and request.peer.address else None


def _secure(service: Service, request: HttpRequest) -> Sequence[str] | None:
    return ("true" if request.peer and request.peer.is_secure else "false",)


def _user_agent(service: Service, request: HttpRequest) -> Sequence[str] | None:
    agent = request.headers.get(b"user-agent")
    return None if agent is None else (agent.decode("latin-1"),)


GLOBAL_KEYS: Final[dict[str, Callable[[Service, HttpRequest], Sequence[str] | None]]] = {
    "aws:currenttime": lambda service, request: (datetime.now(UTC).isoformat(),),
    "aws:epochtime": lambda service, request: (str(int(time())),),
    "aws:requestedregion": lambda service, request: (service.region,),
    "aws:resourceaccount": lambda service, request: (service.account_id,),
    "aws:securetransport": _secure,
    "aws:sourceip": _source_ip,
    "aws:useragent": _user_agent,
}


class Gate(Dispatcher):
    """`gate.guard` is what a Listener wants instead of `handle`."""

    def guard(self, request: HttpRequest, reply: Reply) -> None:
        if request.target != b"/" and self._answered_elsewhere(request, reply):
            return
        is_form = request.headers.get(b"content-type", b"").startswith(FORM)
        if is_form and request.method == b"POST":
            self._answer_sts(request, reply)
            return
        self._caller: Caller | None = None
        self._refused: DynamoDBError | None = None
        try:
            self._caller = self.authenticate(request)
            if self._caller.kind == "AWSService":
                self._act_for_role(request, self._caller, reply)
                return
        except DynamoDBError as error:
            self._refused = error
        except Exception:
            logger.exception("A signature could not be verified")
            self._refused = InternalServerError(INTERNAL_ERROR)
        self._record_and_handle(request, reply)

    def _record_and_handle(self, request: HttpRequest, reply: Reply) -> None:
        if self._recorder is not None:
            recorded = self._recorder.recorded(
                request, self._caller, reply, self._asked_of_rest(request), self._subjects
            )
            if recorded is None:
                return
            reply = recorded
        if self._refused is None:
            self.handle(request, reply)
        else:
            self._refuse(request, self._refused, reply)
        self._caller = None

    def _refuse(self, request: HttpRequest, refused: DynamoDBError, reply: Reply) -> None:
        """Errors come in AWS's order; but nothing large is decoded for somebody unknown, and
        nothing is read, not even from a cache: how long that takes would tell what is there."""
        if request.target == b"/" and len(request.body) > LARGE_BODY_BYTES:
            reply(error_response(refused, JSON_1_0))
            return
        operations = self._operations
        self._operations = self._unread
        try:
            self.handle(request, reply)
        finally:
            self._operations = operations

    def _answered_elsewhere(self, request: HttpRequest, reply: Reply) -> bool:
        """Whether it was for a site, or came with a signature in its URL."""
        site = self._site(request)
        if site is not None:
            # Its files are for everybody; who wants more there signs in, and asks as all others do.
            site(request, reply)
        elif _is_presigned(request):
            self._answer_sts(request, reply)
        elif self._rest is not None and is_location(request.target):
            self._send_code(self._rest, request, reply)
        else:
            return False
        return True

    def protect(
        self,
        service: Service,
        callers: Callers,
        rights: Mapping[str, Rights],
        forwarded_rights: Mapping[str, Mapping[str, Rights]],
        recorder: Recorder | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Must be called before the first request. `forwarded_rights` are those of companions."""
        self._recorder = recorder
        self.limits = limits or Limits()
        self.metrics.more.append(self.limits.metric_lines)
        self.service = service
        self.callers = callers
        self._rights = rights
        self._forwarded_rights = forwarded_rights
        self._subjects = Subjects(service, self._operations, rights, forwarded_rights)
        self._routes = {name: Routes(name, forwarded_rights[name]) for name in (LAMBDA, SCHEDULER)}
        self._verifier = Verifier()
        self._unread = {
            target: replace(one, cache=None, read_plainly=None)
            for target, one in self._operations.items()
        }
        self._signing_names = {
            target: SIGNING_NAMES[target.partition(b".")[0]] for target in self._operations
        }

    def admit_callers(self, callers: Callers) -> None:
        """From now on these, and no others."""
        if self._recorder is not None:
            self._recorder.record_change_of_users()
        self.callers = callers
        self._verifier.forget()

    # Who are you

    def authenticate(self, request: HttpRequest) -> Caller:
        """Who signed a request for an operation or a page."""
        service: str | None = pages.SIGNING_NAME
        rest = service_at(request.target) if request.target != b"/" else None
        if rest is not None:
            service = rest
        elif request.method == b"POST":
            target = request.headers.get(b"x-amz-target", b"")
            service = self._signing_names.get(target)
            if service is None:
                service = SIGNING_NAMES.get(target.partition(b".")[0])
        return self.authenticate_for(request, service)

    def authenticate_for(self, request: HttpRequest, service: str | None) -> Caller:
        """Who signed a request for a service; for none in particular, it is refused later."""
        if self.limits.counts_bytes:
            self.limits.check_bytes(address_of(request), len(request.body))
        try:
            caller = self._verified(request, service)
        except (InvalidSignatureException, UnrecognizedClientException):
            self.limits.note_failure(address_of(request))
            raise
        if self.limits.counts_requests and caller.kind != "AWSService":
            self.limits.check_rate(caller.access_key_id)
        if self.limits.counts_bytes and caller.kind != "AWSService":
            self.limits.check_bytes(caller.access_key_id, len(request.body))
        return caller

    def _verified(self, request: HttpRequest, service: str | None) -> Caller:
        headers = request.headers
        authorization = headers.get(b"authorization", b"")
        place = authorization.rfind(SIGNATURE)
        known = self._verifier.known(authorization[:place])
        if request.target != b"/" or (known is None and not authorization.startswith(ALGORITHM)):
            check_credentials(request)
        if known is not None:
            scope, signature = known, authorization[place + len(SIGNATURE) :]
        else:
            check_credentials(request)
            scope, signature = parse(authorization)
        now = time()
        token = headers.get(b"x-amz-security-token")
        peer = request.peer
        is_new = known is None or (peer is not None and peer.address not in known.addresses)
        if is_new:
            self._check_address(address_of(request), scope.access_key_id, token, now)
        if service is not None:
            check_service(scope, service)
        secret, caller = self.callers.find(scope.access_key_id, token, now)
        packed = request.packed_body
        self._verifier.verify(
            scope,
            signature,
            secret,
            request_date(headers),
            request,
            request.body if packed is None else packed,
            now,
            b"" if request.target == b"/" else canonical_query(request.target),
        )
        if is_new:
            self._verifier.remember(authorization, scope, address_of(request))
            self.limits.note_right(address_of(request), scope.access_key_id)
        return caller

    def _check_address(
        self, address: str, access_key_id: str, token: bytes | None, now: float
    ) -> None:
        """Raises when an address is closed to strangers, and this is one. Whoever has a session of
        ours is none, and nor is a part of this server."""
        if not self.limits.is_closed(address, access_key_id):
            return
        try:
            _, caller = self.callers.find(access_key_id, token, now)
            if caller.session is not None or caller.kind == "AWSService":
                return
        except DynamoDBError:
            pass
        self.limits.refuse_unread()

    def authenticate_query(self, request: HttpRequest, service: str) -> Caller:
        """Who signed a URL."""
        address = address_of(request)
        try:
            check_credentials(request)
            signed = parse_query(request.target)
            now = time()
            self._check_address(address, signed.scope.access_key_id, signed.token, now)
            check_service(signed.scope, service)
            secret, caller = self.callers.find(signed.scope.access_key_id, signed.token, now)
            query = canonical_query(request.target, without="X-Amz-Signature")
            self._verifier.verify(
                signed.scope,
                signed.signature,
                secret,
                signed.date,
                request,
                request.body,
                now,
                query,
                signed.seconds,
            )
        except (InvalidSignatureException, UnrecognizedClientException):
            self.limits.note_failure(address)
            raise
        self.limits.note_right(address, signed.scope.access_key_id)
        return caller

    def _act_for_role(self, request: HttpRequest, service: Caller, reply: Reply) -> None:
        """A part of this server asks for itself, or for a role that trusts it."""
        try:
            role = request.headers.get(roles.HEADER)
            caller = service
            if role is not None:
                context = RequestContext(service, self.service, request, roles.NEED)
                caller = roles.caller_for(self.callers, service, role.decode("latin-1"), context)
            if request.headers.get(b"x-amz-target") == roles.CHECK:
                need = roles.need_in(request.body)
                self.check(caller, request, need)
                reply(HttpResponse(200, b"{}", JSON_1_0))
                return
            if request.headers.get(b"x-amz-target") == roles.SESSION and caller is not service:
                reply(HttpResponse(200, roles.session_for(self.callers, caller), JSON_1_0))
                return
            self._caller = caller
        except DynamoDBError as error:
            self._refused = error
            self._caller = None
            if request.headers.get(b"x-amz-target") in (roles.CHECK, roles.SESSION):
                reply(error_response(error, JSON_1_0))
                return
        self._record_and_handle(request, reply)

    # What may you do

    def admit(
        self, request: HttpRequest, operation: Operation, body: dict[str, Any] | None
    ) -> dict[str, Any]:
        caller = self._admitted()
        if body is None:
            raise SerializationException
        operation.validate(body)
        if operation.name == EACH_ALONE:
            self._refuse_statements(caller, request, body)
        else:
            self.authorize(caller, request, operation.name, self._rights, body)
        return body

    def _refuse_statements(
        self, caller: Caller, request: HttpRequest, body: dict[str, Any]
    ) -> None:
        """Mark the statements that the caller may not run; all of them, and nothing is run."""
        refusals: list[AccessDeniedException] = []
        statements = body["Statements"]
        for one in statements:
            try:
                alone = {**body, "Statements": [one]}
                self.authorize(caller, request, EACH_ALONE, self._rights, alone)
            except AccessDeniedException as error:
                one[REFUSAL] = error
                refusals.append(error)
        if len(refusals) == len(statements):
            raise refusals[0]

    def admit_cached(self, request: HttpRequest, operation: Operation) -> None:
        caller = self._admitted()
        action = items.PREFIX + operation.name
        named = items.NamedIn(self.service, operation.name, request.body)
        if not caller.applicable(action, named.resource, named.policy).is_plain_allow:
            self.check(caller, request, Need(action, named.resource, named.keys, named.policy))

    def admit_forwarded(self, request: HttpRequest, service: bytes, operation: bytes) -> None:
        caller = self._admitted()
        rights = self._forwarded_rights[service.decode("latin-1")]
        name = operation.decode("latin-1")
        if name not in rights:
            # The companion knows it no better, and says so.
            return
        body = codec.decode(request.body) if request.body else {}
        if not isinstance(body, dict):
            raise SerializationException
        self.authorize(caller, request, name, rights, body)

    def admit_large(self, request: HttpRequest, operation: Operation) -> Admission:
        caller = self._admitted()
        return Admission(self, caller, request, operation.name, self._rights)

    def admit_rest(self, request: HttpRequest, service: str) -> None:
        try:
            caller = self._admitted()
            asked = self._asked(request, service, request.body)
            if asked is None:
                raise UnknownRoute
            rights = self._forwarded_rights[service]
            self.authorize(caller, request, asked.name, rights, asked.members)
        except REFUSALS as error:
            raise Forbidden(error) from None

    def _asked_of_rest(self, request: HttpRequest) -> tuple[str, Asked | None] | None:
        """The service whose protocol is REST, and what is asked of it; None for all others."""
        service = service_at(request.target) if request.target != b"/" else None
        if service is None:
            return None
        body = b"" if self._caller is None else request.body
        try:
            return service, self._asked(request, service, body)
        except DynamoDBError:
            return service, None

    def _asked(self, request: HttpRequest, service: str, body: bytes) -> Asked | None:
        method, target = request.method.decode("latin-1"), request.target.decode("latin-1")
        return self._routes[service].asked(method, target, body)

    def _admitted(self) -> Caller:
        if self._refused is not None:
            raise self._refused
        if self._caller is None:
            raise MissingAuthenticationTokenException(MISSING_TOKEN)
        return self._caller

    def authorize(
        self,
        caller: Caller,
        request: HttpRequest,
        operation: str,
        rights: Mapping[str, Rights],
        body: dict[str, Any],
    ) -> None:
        needed = rights.get(operation)
        if needed is None:
            raise AccessDeniedException(NO_RIGHTS.format(operation))
        for need in needed(self.service, body):
            self.check(caller, request, need)

    def check(self, caller: Caller, request: HttpRequest, need: Need) -> None:
        """Raises unless the caller has a right."""
        applicable = caller.applicable(need.action, need.resource, need.policy)
        if applicable.is_plain_allow:
            return
        if applicable.is_reserved and caller.kind != "AWSService":
            self.check(caller, request, Need(service_tables.ACTION, need.resource))
        context = RequestContext(caller, self.service, request, need)
        asked = Request(caller.principal, need.action, need.resource, context)
        decision = decide(applicable.policies, asked)
        if not decision.is_allowed:
            raise AccessDeniedException(denial(asked, decision))

    def context(self, caller: Caller, request: HttpRequest, need: Need) -> RequestContext:
        return RequestContext(caller, self.service, request, need)

    # Pages and STS

    def without_operation(self, request: HttpRequest, reply: Reply) -> None:
        path = request.target.partition(b"?")[0]
        if path not in PUBLIC_PATHS and request.method in (b"GET", b"HEAD"):
            need = pages.need_of(self.service, path)
            caller: Caller | None = None
            try:
                caller = self._page_caller(request)
                self.check(caller, request, need)
            except DynamoDBError as error:
                self._recording_page(request, caller, need, reply)(pages.refusal(error))
                return
            is_polled = path in pages.POLLED
            reply = self._recording_page(request, caller, need, reply, is_polled=is_polled)
        super().without_operation(request, reply)

    def _recording_page(
        self,
        request: HttpRequest,
        caller: Caller | None,
        need: Need,
        reply: Reply,
        *,
        is_polled: bool = False,
    ) -> Reply:
        if self._recorder is None:
            return reply
        named, operation = pages.named_in(request.target), need.action.partition(":")[2]
        return self._recorder.replying(
            *(pages.SIGNING_NAME, operation, caller, request, named, (need.resource,), reply),
            is_polled=is_polled,
        )

    def _page_caller(self, request: HttpRequest) -> Caller:
        if not pages.has_password(request):
            return self._admitted()
        address = address_of(request)
        try:
            access_key_id, password = pages.password_of(request)
            self._check_address(address, access_key_id, None, time())
            caller = pages.caller_of(self.callers, access_key_id, password)
        except UnrecognizedClientException:
            self.limits.note_failure(address)
            raise
        self.limits.note_right(address, access_key_id)
        return caller

    def _send_code(self, functions: Companion, request: HttpRequest, reply: Reply) -> None:
        """The code of a function, for who has the URL that GetFunction told: we signed it."""
        caller: Caller | None = None
        error: DynamoDBError | None = None
        try:
            if request.method != b"GET" or request.body:
                raise UnknownRoute
            caller = self.authenticate_query(request, LAMBDA)
            if caller.kind != "AWSService":
                raise unknown_key()
        except REFUSALS as refused:
            error = Forbidden(refused)
        except DynamoDBError as refused:
            error = refused
        if self._recorder is not None:
            name = function_at(request.target)
            named, arns = {"FunctionName": name}, (function_arn(self.service, name),)
            reply = self._recorder.replying(LAMBDA, CODE, caller, request, named, arns, reply)
        if error is not None:
            reply(rest_error(error))
        else:
            functions.forward(rest_operation(request), b"", reply)

    def _answer_sts(self, request: HttpRequest, reply: Reply) -> None:
        answered = sts.answer(self, request)
        if self._recorder is not None:
            self._recorder.record(
                sts.SERVICE,
                answered.action,
                answered.caller,
                request,
                answered.parameters,
                answered.response,
            )
        reply(answered.response)


class Admission:
    """A caller whose request is decoded elsewhere."""

    def __init__(
        self,
        gate: Gate,
        caller: Caller,
        request: HttpRequest,
        operation: str,
        rights: Mapping[str, Rights],
    ) -> None:
        self._gate = gate
        self._caller = caller
        self._request = HttpRequest(request.method, request.target, request.headers)
        """Without its body, which is large."""
        self._request.peer = request.peer
        self._operation = operation
        self._rights = rights

    def check_needs(self, needs: Sequence[Any]) -> None:
        for one in needs:
            need = Need(one.action, one.resource, partial(_same, one.keys), one.policy)
            self._gate.check(self._caller, self._request, need)

    def check_body(self, body: dict[str, Any]) -> None:
        self._gate.authorize(self._caller, self._request, self._operation, self._rights, body)


def _same(keys: Keys) -> Keys:
    return keys


def address_of(request: HttpRequest) -> str:
    return request.peer.address if request.peer else ""


def _is_presigned(request: HttpRequest) -> bool:
    return b"X-Amz-Signature=" in request.target and b"Action=" in request.target
