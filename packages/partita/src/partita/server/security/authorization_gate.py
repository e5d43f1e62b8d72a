"""The authorization gate: a dispatcher that only accepts requests that are signed by a known key
and allowed by policies.

The signature is verified before a body is decompressed or parsed; until then, a body is only bytes
with a hash. The rights of the caller are an admission, which accompanies the request. No decision
is cached: every request is decided anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Any, Final

import msgspec

from partita.client.aws_services import SIGN_IN_HEADER
from partita.database.operations.operation_context import (
    DatabaseService,
    PermittedBytes,
    PermittedRequest,
)
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
    UnknownOperationException,
    UnknownRoute,
    UnrecognizedClientException,
)
from partita.server.admission import (
    MISSING_TOKEN,
    NOBODY,
    Admission,
    Denial,
    Forwarded,
    Parts,
    check_credentials,
)
from partita.server.dispatch import (
    INTERNAL_ERROR,
    PUBLIC_PATHS,
    UNKNOWN_PATH,
    Companion,
    Dispatcher,
    error_response,
    json_type,
)
from partita.server.http.http_messages import (
    JSON,
    PROBLEM,
    HttpRequest,
    HttpResponse,
    Reply,
    problem_body,
)
from partita.server.protocol import json_codec
from partita.server.protocol.aws_responses import CBOR_1_1, JSON_1_0, JSON_1_1
from partita.server.protocol.rest import (
    RestCall,
    RestRoutes,
    function_at,
    is_location,
    rest_error,
    rest_operation,
    service_at,
)
from partita.server.protocol.service_model import LAMBDA, SCHEDULER
from partita.server.security.abuse_limits import AbuseLimits
from partita.server.security.audit.audit_recorder import AuditRecorder
from partita.server.security.authentication import operator_pages, sts
from partita.server.security.authentication.signature_verifier import (
    ALGORITHM,
    SIGNATURE,
    CredentialScope,
    SignatureVerifier,
    canonical_query,
    check_service,
    parse,
    parse_query,
    request_date,
)
from partita.server.security.identities import service_roles
from partita.server.security.identities.callers import Caller, Callers, unknown_key
from partita.server.security.policies.policy_decision import (
    DecisionSteps,
    PolicyRequest,
    decide,
    denial,
)
from partita.server.security.rights import item_rights, service_tables
from partita.server.security.rights.function_arns import function_arn
from partita.server.security.rights.requested_rights import (
    EACH_ALONE,
    Keys,
    RequestedRight,
    Rights,
    denials_of,
    parts_of,
    permitted,
)

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
"""The service in the credential scope of a signature, by the prefix of the request's target."""
FORM: Final = b"application/x-www-form-urlencoded"
REFUSALS: Final = (
    AccessDeniedException,
    ExpiredTokenException,
    IncompleteSignatureException,
    InvalidSignatureException,
    MissingAuthenticationTokenException,
    UnrecognizedClientException,
)
"""Refusals of callers who are unknown or lack a right."""
CODE: Final = "GetFunctionCode"
"""The name of a code download in the audit log. AWS has no operation for it."""
SIGN_IN: Final = SIGN_IN_HEADER.lower().encode()
SIGN_IN_EVENT: Final = ("signin", "ConsoleLogin")
"""CloudTrail's event source and name for a sign-in to the console."""
NO_RIGHTS: Final = "{} has no rights that could be granted."
PAGE_METHODS: Final = (b"GET", b"HEAD")
NOT_PACKED: Final = HttpResponse(
    415, problem_body(415, "This is sent without a Content-Encoding."), PROBLEM
)
UNKNOWN_SENDER: Final = HttpResponse(
    401, problem_body(401, "Sign in before you send so much."), PROBLEM
)


class RequestConditionContext:
    """The condition keys for one need, computed when a policy uses them."""

    __slots__ = ("_caller", "_computed", "_need", "_request", "_service")

    def __init__(
        self, caller: Caller, service: DatabaseService, request: HttpRequest, need: RequestedRight
    ) -> None:
        self._caller = caller
        self._service = service
        self._request = request
        self._need = need
        self._computed: Keys | None = None

    def get(self, key: str, /) -> Sequence[str] | None:
        values = self._caller.keys.get(key)
        if values is not None:
            return values
        global_key = GLOBAL_KEYS.get(key)
        if global_key is not None:
            return global_key(self._service, self._request)
        if self._computed is None:
            self._computed = self._need.keys()
        return self._computed.get(key)


def _source_ip(service: DatabaseService, request: HttpRequest) -> Sequence[str] | None:
    return (request.peer.address,) if request.peer and request.peer.address else None


def _secure(service: DatabaseService, request: HttpRequest) -> Sequence[str] | None:
    return ("true" if request.peer and request.peer.is_secure else "false",)


def _user_agent(service: DatabaseService, request: HttpRequest) -> Sequence[str] | None:
    agent = request.headers.get(b"user-agent")
    return None if agent is None else (agent.decode("latin-1"),)


GLOBAL_KEYS: Final[dict[str, Callable[[DatabaseService, HttpRequest], Sequence[str] | None]]] = {
    "aws:currenttime": lambda service, request: (datetime.now(UTC).isoformat(),),
    "aws:epochtime": lambda service, request: (str(int(time())),),
    "aws:requestedregion": lambda service, request: (service.region,),
    "aws:resourceaccount": lambda service, request: (service.account_id,),
    "aws:securetransport": _secure,
    "aws:sourceip": _source_ip,
    "aws:useragent": _user_agent,
}


class SignatureClaim:
    """The signer that a request claims, as found in its head. The signature is not verified yet."""

    __slots__ = ("caller", "is_new", "now", "scope", "secret", "signature")

    def __init__(
        self,
        scope: CredentialScope,
        signature: bytes,
        secret: str,
        caller: Caller,
        now: float,
        is_new: bool,
    ) -> None:
        self.scope = scope
        self.signature = signature
        self.secret = secret
        self.caller = caller
        self.now = now
        self.is_new = is_new
        """True unless this key has signed correctly from this address before."""


class Gate(Dispatcher):
    """A dispatcher that authenticates and authorizes. A Listener calls `gate.guard`."""

    def guard(self, request: HttpRequest, reply: Reply) -> None:
        """Authenticates a request before any use of its body, then handles it."""
        if request.target != b"/" and self._answered_elsewhere(request, reply):
            return
        if request.method != b"POST":
            if _is_public(request):
                self.without_operation(request, reply, NOBODY)
                return
        elif _is_form(request):
            self._answer_sts(request, reply)
            return
        try:
            caller = self._identify(request)
        except DynamoDBError as error:
            self._refuse(request, reply, error)
            return
        except Exception:
            logger.exception("A signature could not be verified")
            self._refuse(request, reply, InternalServerError(INTERNAL_ERROR))
            return
        act = self._act_for_role if caller.kind == "AWSService" else self._record_and_handle
        if request.unpack is None:
            act(request, caller, reply)
        else:
            request.unpack(request, reply, partial(act, request, caller))

    def _record_and_handle(self, request: HttpRequest, caller: Caller, reply: Reply) -> None:
        if request.headers.get(b"content-type") == CBOR_1_1:
            # Imported on first use: most servers never get a request in CBOR.
            from partita.server.protocol.cbor import answer_in_cbor

            def handle(json_request: HttpRequest, answer: Reply) -> None:
                self._record_and_handle(json_request, caller, answer)

            answer_in_cbor(handle, request, reply)
            return
        admission = AuthenticatedCaller(self, caller, request)
        recorded = self._recorded(request, caller, reply, admission.resources)
        if recorded is not None:
            self.handle_admitted(request, recorded, admission)

    def _recorded(
        self, request: HttpRequest, caller: Caller | None, reply: Reply, resources: Sequence[str]
    ) -> Reply | None:
        """Returns a reply function that writes the response to the audit log, before it is sent.

        Returns None if the recorder has refused the request. When the reply is called, `resources`
        must have the resources of the request.
        """
        recorder = self._recorder
        if recorder is None:
            return reply
        rest = None if request.target == b"/" else self._rest_service_and_call(request, caller)
        if rest is None and request.method in PAGE_METHODS:
            path = request.target.partition(b"?")[0]
            need = operator_pages.need_of(self.service, path)
            return recorder.replying(
                *(operator_pages.SIGNING_NAME, need.action.partition(":")[2], caller, request),
                *(operator_pages.named_in(request.target), (need.resource,), reply),
                is_polled=path in operator_pages.POLLED,
            )
        if caller is None and _is_form(request):
            return recorder.replying(sts.SERVICE, "", None, request, {}, (), reply)
        return recorder.recorded(request, caller, reply, rest, resources)

    def _refuse(self, request: HttpRequest, reply: Reply, error: DynamoDBError) -> None:
        """Refuses an unauthenticated request. The answer depends on its head only, not its body."""
        recorded = self._recorded(request, None, reply, ())
        if recorded is not None:
            recorded(self._refusal(request, error))

    def _refusal(self, request: HttpRequest, error: DynamoDBError) -> HttpResponse:
        if request.target != b"/" and self._rest is not None and service_at(request.target):
            return rest_error(Forbidden(error) if isinstance(error, REFUSALS) else error)
        if request.method in PAGE_METHODS:
            return operator_pages.refusal(error)
        content_type = request.headers.get(b"content-type", b"")
        target = request.headers.get(b"x-amz-target", b"")
        is_json = json_type(content_type) is not None
        if request.method != b"POST" or not (is_json or content_type in (b"", CBOR_1_1)):
            return UNKNOWN_PATH
        if target not in self._operations and target.partition(b".")[0] not in self._companions:
            error = UnknownOperationException()
        if content_type != CBOR_1_1:
            return error_response(error, json_type(content_type) or JSON)
        from partita.server.protocol.cbor import from_json

        response = error_response(error, JSON_1_1)
        return HttpResponse(response.status, from_json(response.body), CBOR_1_1)

    def check_head(self, request: HttpRequest) -> HttpResponse | None:
        """Returns a refusal if the head of a request is enough to refuse it.

        Called before a large body is read, so that unknown callers cannot fill the memory.
        """
        site = self._site(request)
        if site is not None:
            return None if site.knows(request) else UNKNOWN_SENDER
        try:
            if _is_presigned(request) or is_location(request.target):
                raise MissingAuthenticationTokenException(MISSING_TOKEN)
            if _is_public(request):
                return UNKNOWN_SENDER
            self._claimed(request, self._service_of(request))
        except DynamoDBError as error:
            answers: list[HttpResponse] = []
            self._refuse(request, answers.append, error)
            return answers[0]
        return None

    def _answered_elsewhere(self, request: HttpRequest, reply: Reply) -> bool:
        """Answers requests for a site, and those with a signature in the URL.

        Returns False for all others.
        """
        site = self._site(request)
        if site is not None:
            # The files of a site are public. Its API requires a sign-in, and sends requests that
            # are authorized like all others.
            if request.unpack is None:
                site.handle(request, reply)
            else:
                reply(NOT_PACKED)
        elif _is_presigned(request):
            self._answer_sts(request, reply)
        elif self._rest is not None and is_location(request.target):
            self._send_code(self._rest, request, reply)
        else:
            return False
        return True

    def protect(
        self,
        service: DatabaseService,
        callers: Callers,
        rights: Mapping[str, Rights],
        forwarded_rights: Mapping[str, Mapping[str, Rights]],
        recorder: AuditRecorder | None = None,
        limits: AbuseLimits | None = None,
    ) -> None:
        """Sets up the gate; must be called before the first request. `forwarded_rights` has the
        rights for the operations of companions, by service."""
        self._recorder = recorder
        self.limits = limits or AbuseLimits()
        self.metrics.more.append(self.limits.metric_families)
        self.service = service
        self.callers = callers
        self.rights = rights
        self.forwarded_rights = forwarded_rights
        self._routes = {
            name: RestRoutes(name, forwarded_rights[name])
            for name in (LAMBDA, SCHEDULER)
            if name in forwarded_rights
        }
        self._verifier = SignatureVerifier()
        self._signing_names = {
            target: SIGNING_NAMES[target.partition(b".")[0]] for target in self._operations
        }

    def admit_callers(self, callers: Callers) -> None:
        """Replaces the callers. The next request is decided by the new ones."""
        if self._recorder is not None:
            self._recorder.record_change_of_users()
        self.callers = callers
        self._verifier.forget()

    # Authentication

    def _identify(self, request: HttpRequest) -> Caller:
        """Returns the authenticated caller of an operation or a page, or raises."""
        if request.method in PAGE_METHODS and operator_pages.has_password(request):
            return self._with_password(request)
        return self.authenticate(request, self._service_of(request))

    def _service_of(self, request: HttpRequest) -> str | None:
        """Returns the service that a request must be signed for.

        None for an unknown target, which is refused later.
        """
        rest = service_at(request.target) if request.target != b"/" else None
        if rest is not None:
            return rest
        if request.method != b"POST":
            return operator_pages.SIGNING_NAME
        if _is_form(request):
            return sts.SERVICE
        target = request.headers.get(b"x-amz-target", b"")
        service = self._signing_names.get(target)
        return service or SIGNING_NAMES.get(target.partition(b".")[0])

    def _with_password(self, request: HttpRequest) -> Caller:
        address = address_of(request)
        try:
            access_key_id, password = operator_pages.password_of(request)
            self._check_address(address, access_key_id, None, time())
            caller = operator_pages.caller_of(self.callers, access_key_id, password)
        except UnrecognizedClientException:
            self.limits.note_failure(address)
            raise
        self.limits.note_right(address, access_key_id)
        return caller

    def authenticate(self, request: HttpRequest, service: str | None) -> Caller:
        """Verifies the signature of a request for a service. The body must not be decompressed yet,
        because clients sign the bytes that they send."""
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
        claim = self._claimed(request, service)
        self._verifier.verify(
            claim.scope,
            claim.signature,
            claim.secret,
            request_date(request.headers),
            request,
            request.body,
            claim.now,
            b"" if request.target == b"/" else canonical_query(request.target),
        )
        if claim.is_new:
            authorization = request.headers[b"authorization"]
            self._verifier.remember(authorization, claim.scope, address_of(request))
            self.limits.note_right(address_of(request), claim.scope.access_key_id)
        return claim.caller

    def _claimed(self, request: HttpRequest, service: str | None) -> SignatureClaim:
        """Returns the signer that the head of a request claims, without verifying the signature."""
        headers = request.headers
        authorization = headers.get(b"authorization", b"")
        place = authorization.rfind(SIGNATURE)
        # A cached scope has signed correctly before with the same header up to the signature.
        cached = self._verifier.cached_scope(authorization[:place])
        if request.target != b"/" or (cached is None and not authorization.startswith(ALGORITHM)):
            check_credentials(request)
        if cached is not None:
            scope, signature = cached, authorization[place + len(SIGNATURE) :]
        else:
            check_credentials(request)
            scope, signature = parse(authorization)
        now = time()
        token = headers.get(b"x-amz-security-token")
        peer = request.peer
        is_new = cached is None or (peer is not None and peer.address not in cached.addresses)
        if is_new:
            self._check_address(address_of(request), scope.access_key_id, token, now)
        if service is not None:
            check_service(scope, service)
        secret, caller = self.callers.find(scope.access_key_id, token, now)
        return SignatureClaim(scope, signature, secret, caller, now, is_new)

    def _check_address(
        self, address: str, access_key_id: str, token: bytes | None, now: float
    ) -> None:
        """Raises if an address is closed after too many wrong signatures.

        Still admitted from there are keys that were right from this address before, session tokens
        that this server has issued, and the server's own processes.
        """
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
        """Verifies the signature of a presigned URL and returns its signer, or raises."""
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
        """Handles a request of a process of this server, which acts for itself or for a role that
        trusts it."""
        target = request.headers.get(b"x-amz-target")
        try:
            role = request.headers.get(service_roles.HEADER)
            caller = service
            if role is not None:
                context = RequestConditionContext(
                    service, self.service, request, service_roles.NEED
                )
                caller = service_roles.caller_for(
                    self.callers, service, role.decode("latin-1"), context
                )
            if target == service_roles.CHECK:
                self.check(caller, request, service_roles.need_in(request.body))
                reply(HttpResponse(200, b"{}", JSON_1_0))
            elif target == service_roles.SESSION and caller is not service:
                reply(HttpResponse(200, service_roles.session_for(self.callers, caller), JSON_1_0))
            else:
                self._record_and_handle(request, caller, reply)
        except DynamoDBError as error:
            if target in (service_roles.CHECK, service_roles.SESSION):
                reply(error_response(error, JSON_1_0))
            else:
                self._refuse(request, reply, error)

    # Authorization

    def _rest_service_and_call(
        self, request: HttpRequest, caller: Caller | None
    ) -> tuple[str, RestCall | None] | None:
        """Returns the REST service and its operation; None for a request in another protocol."""
        service = service_at(request.target)
        if service is None:
            return None
        body = b"" if caller is None else request.body
        try:
            return service, self.rest_call(request, service, body)
        except DynamoDBError:
            return service, None

    def rest_call(self, request: HttpRequest, service: str, body: bytes) -> RestCall | None:
        """Returns the operation of a REST request; None if this server does not answer for the
        service."""
        method, target = request.method.decode("latin-1"), request.target.decode("latin-1")
        routes = self._routes.get(service)
        return None if routes is None else routes.find(method, target, body)

    def needs_of(
        self, operation: str, rights: Mapping[str, Rights], body: dict[str, Any]
    ) -> Sequence[RequestedRight]:
        needed = rights.get(operation)
        if needed is None:
            raise AccessDeniedException(NO_RIGHTS.format(operation))
        return needed(self.service, body)

    def check(
        self,
        caller: Caller,
        request: HttpRequest,
        need: RequestedRight,
        steps: DecisionSteps | None = None,
    ) -> None:
        """Raises AccessDeniedException unless the caller has a right."""
        applicable = caller.applicable(need.action, need.resource, need.policy)
        if applicable.is_plain_allow:
            return
        if applicable.is_reserved and caller.kind != "AWSService":
            # Tables of functions and workflows need a further right: who can write them, can run
            # code with any role.
            self.check(caller, request, RequestedRight(service_tables.ACTION, need.resource))
        context = RequestConditionContext(caller, self.service, request, need)
        policy_request = PolicyRequest(caller.principal, need.action, need.resource, context, steps)
        decision = decide(applicable.policies, policy_request)
        if not decision.is_allowed:
            raise AccessDeniedException(denial(policy_request, decision))

    def context(
        self, caller: Caller, request: HttpRequest, need: RequestedRight
    ) -> RequestConditionContext:
        return RequestConditionContext(caller, self.service, request, need)

    # Pages and STS

    def without_operation(self, request: HttpRequest, reply: Reply, admission: Admission) -> None:
        try:
            super().without_operation(request, reply, admission)
        except DynamoDBError as error:
            reply(operator_pages.refusal(error))

    def _send_code(self, functions: Companion, request: HttpRequest, reply: Reply) -> None:
        """Sends the code of a function to a client that has the URL of a GetFunction response.

        The server itself has signed that URL.
        """
        caller: Caller | None = None
        refused: DynamoDBError | None = None
        try:
            if request.method != b"GET" or request.body:
                raise UnknownRoute
            caller = self.authenticate_query(request, LAMBDA)
            if caller.kind != "AWSService":
                raise unknown_key()
        except DynamoDBError as error:
            refused = error
        if self._recorder is not None:
            name = function_at(request.target)
            named, arns = {"FunctionName": name}, (function_arn(self.service, name),)
            reply = self._recorder.replying(LAMBDA, CODE, caller, request, named, arns, reply)
        if refused is None:
            functions.forward(Forwarded(rest_operation(request), b""), reply)
        else:
            reply(rest_error(Forbidden(refused) if isinstance(refused, REFUSALS) else refused))

    def _answer_sts(self, request: HttpRequest, reply: Reply) -> None:
        if request.unpack is not None:
            reply(NOT_PACKED)
            return
        answered = sts.answer(self, request)
        if self._recorder is not None:
            # The header is trusted: it only decides under which name a request is recorded.
            is_sign_in = SIGN_IN in request.headers
            self._recorder.record(
                *(SIGN_IN_EVENT if is_sign_in else (sts.SERVICE, answered.action)),
                answered.caller,
                request,
                answered.parameters,
                answered.response,
            )
        reply(answered.response)


class AuthenticatedCaller(Admission):
    """The admission of an authenticated caller: permits what the policies allow."""

    def __init__(self, gate: Gate, caller: Caller, head: HttpRequest) -> None:
        self._gate = gate
        self._caller = caller
        self._head = head
        self.resources: list[str] = []
        """All resources that the request has needed rights on, for the audit log."""

    @property
    def whose(self) -> str:
        return self._caller.access_key_id

    def check_credentials(self) -> None:
        pass

    def permit_bytes(self, operation: str, body: bytes) -> PermittedBytes | None:
        gate, caller = self._gate, self._caller
        action = item_rights.PREFIX + operation
        try:
            named = item_rights.LazyConditionKeys(gate.service, operation, body)
            self.resources.append(named.resource)
            if not caller.applicable(action, named.resource, named.policy).is_plain_allow:
                need = RequestedRight(action, named.resource, named.keys, named.policy)
                gate.check(caller, self._head, need)
        except (DynamoDBError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return PermittedBytes(body)

    def permit(self, operation: str, request: dict[str, Any]) -> PermittedRequest:
        gate = self._gate
        if operation == EACH_ALONE:
            parts = parts_of(operation, gate.rights[operation], gate.service, request)
            return permitted(request, self.denials(parts))
        self._check(gate.needs_of(operation, gate.rights, request))
        return PermittedRequest(request)

    def _check(self, needs: Sequence[RequestedRight]) -> None:
        """Raises unless the caller has all rights that a request needs."""
        gate, steps = self._gate, DecisionSteps()
        for need in needs:
            self.resources.append(need.resource)
            gate.check(self._caller, self._head, need, steps)

    def denials(self, parts: Parts) -> list[Denial]:
        for needs in parts:
            self.resources += [need.resource for need in needs]
        check = partial(self._gate.check, self._caller, self._head, steps=DecisionSteps())
        return denials_of(parts, check)

    def forward(self, service: bytes, operation: bytes, body: bytes) -> Forwarded:
        gate = self._gate
        rights = gate.forwarded_rights[service.decode("latin-1")]
        name = operation.decode("latin-1")
        if name not in rights:
            raise UnknownOperationException
        request = json_codec.decode(body) if body else {}
        if not isinstance(request, dict):
            raise SerializationException
        self._check(gate.needs_of(name, rights, request))
        return Forwarded(operation, body)

    def forward_rest(self, service: str, operation: bytes, request: HttpRequest) -> Forwarded:
        gate = self._gate
        try:
            call = gate.rest_call(request, service, request.body)
            if call is None:
                raise UnknownRoute
            rights = gate.forwarded_rights[service]
            self._check(gate.needs_of(call.name, rights, call.members))
        except REFUSALS as error:
            raise Forbidden(error) from None
        return Forwarded(operation, request.body)

    def permit_page(self, path: bytes, query: dict[str, Any]) -> PermittedRequest:
        gate = self._gate
        gate.check(self._caller, self._head, operator_pages.need_of(gate.service, path))
        return PermittedRequest(query)


def address_of(request: HttpRequest) -> str:
    return request.peer.address if request.peer else ""


def _is_form(request: HttpRequest) -> bool:
    return request.headers.get(b"content-type", b"").startswith(FORM)


def _is_public(request: HttpRequest) -> bool:
    return request.method in PAGE_METHODS and request.target.partition(b"?")[0] in PUBLIC_PATHS


def _is_presigned(request: HttpRequest) -> bool:
    return b"X-Amz-Signature=" in request.target and b"Action=" in request.target
