"""Records requests in the audit log, with their outcome, before the response is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from partita.errors import DynamoDBError, InternalServerError
from partita.foundation.clock import Stopwatch, system_stopwatch
from partita.server.http.http_messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol.aws_responses import JSON_1_0, error_body
from partita.server.protocol.rest import RestCall
from partita.server.security.abuse_limits import RateWindow
from partita.server.security.audit.audit_budget import MINUTE, DroppedEvents, UnauthenticatedBudget
from partita.server.security.audit.audit_events import (
    SampledTable,
    changes_something,
    event,
    is_data,
    is_sampled,
    is_success,
    named_in,
    names_of,
    tables_in,
    tables_of,
)
from partita.server.security.audit.audit_log import AuditLog
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.user_directory import ACCOUNT_ID
from partita.server.security.policies.policy_decision import CallerPolicies, Principal

SOURCES: Final = {
    b"DynamoDB_20120810": "dynamodb",
    b"DynamoDBStreams_20120810": "dynamodb",
    b"Kinesis_20131202": "kinesis",
    b"AWSStepFunctions": "states",
    b"PartitaAccess": "iam",
    b"PartitaBackup": "partita",
}
POLLED_SECONDS: Final = 3600.0
"""A caller's successful requests for a polled page from one address get one line in this time."""
SUBJECT_CHARS_MAX: Final = 512
DROP_EVENTS: Final = "DropEvents"
NOT_WRITABLE: Final = (
    "The audit log cannot be written, so nothing may be changed: there must be space on its disk."
)
CallLater = Callable[[float, Callable[[], None]], object]

_SERVER: Final = Caller(
    Principal(f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/partita", ACCOUNT_ID),
    "AWSService",
    "partita",
    "",
    CallerPolicies(identity=()),
)
"""The server itself as the caller, for events that it notices."""


class AuditRecorder:
    """Decides which requests are recorded, and writes them to the log.

    Unauthenticated requests share a budget. All other events are always written.
    """

    def __init__(
        self,
        log: AuditLog,
        sampled: Sequence[SampledTable] = (),
        stopwatch: Stopwatch = system_stopwatch,
        call_later: CallLater | None = None,
    ) -> None:
        """`sampled` are tables whose data requests are recorded, too. Without `call_later`, the
        count of dropped events is only written when the log is closed."""
        self._log = log
        self._sampled = sampled
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._unrecorded: set[bytes] = set()
        """A cache of targets whose requests are not recorded: those for data, without sampling."""
        self._polled = RateWindow(POLLED_SECONDS)
        self._budget = UnauthenticatedBudget()
        self._dropped = DroppedEvents()

    def recorded(
        self,
        request: HttpRequest,
        caller: Caller | None,
        reply: Reply,
        rest: tuple[str, RestCall | None] | None,
        resources: Sequence[str],
    ) -> Reply | None:
        """Returns a reply function that records the request first, or None if it was refused here.

        `rest` is the operation of a REST request. `resources` fills while the request is
        authorized, and is complete when the reply is called.
        """
        target = request.headers.get(b"x-amz-target", b"")
        if rest is None and target in self._unrecorded:
            return reply
        source, operation, members = _asked(request, target, rest)
        if is_data(operation) and not self._sampled:
            if rest is None:
                self._unrecorded.add(target)
            return reply
        if caller is None:
            # The body of an unauthenticated request is never decoded, not even for its table name.
            named = names_of(members or {})
            return self.replying(source, operation, None, request, named, (), reply)
        if not operation or caller.kind == "AWSService":
            # A process of this server acts for a caller whose own request is recorded.
            return reply
        if is_data(operation):
            return self._sampling(source, operation, caller, request, members, resources, reply)
        if changes_something(operation) and not self._log.is_writable:
            error: DynamoDBError = InternalServerError(NOT_WRITABLE)
            reply(HttpResponse(error.status, error_body(error), JSON_1_0))
            return None
        names = named_in(source, request.body) if members is None else names_of(members)
        return self.replying(source, operation, caller, request, names or {}, resources, reply)

    def _sampling(
        self,
        source: str,
        operation: str,
        caller: Caller,
        request: HttpRequest,
        members: Mapping[str, Any] | None,
        resources: Sequence[str],
        reply: Reply,
    ) -> Reply:
        """Returns a reply function that records a request for data if its table is sampled."""

        def named() -> dict[str, Any] | None:
            return named_in(source, request.body) if members is None else names_of(members)

        def is_recorded() -> bool:
            if resources:
                return is_sampled(self._sampled, tables_of(resources))
            # The request was refused before its resources were known. One that cannot even be
            # parsed is recorded.
            names = named()
            return names is None or is_sampled(self._sampled, tables_in(names))

        def write_down(response: HttpResponse) -> None:
            if is_recorded():
                self.record(source, operation, caller, request, named() or {}, response, resources)
            reply(response)

        return write_down

    def replying(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        resources: Sequence[str],
        reply: Reply,
        *,
        is_polled: bool = False,
    ) -> Reply:
        """Returns a reply function that records the request first.

        With `is_polled`, a successful request is only recorded if it is the caller's first of its
        kind from that address for an hour.
        """
        # A copy without the body, which may be large.
        kept = HttpRequest(request.method, request.target, request.headers)
        kept.peer = request.peer

        def write_down(response: HttpResponse) -> None:
            is_usual = is_polled and is_success(response)
            if not is_usual or self._is_first(caller, kept, operation, named):
                self.record(source, operation, caller, kept, named, response, resources)
            reply(response)

        return write_down

    def _is_first(
        self, caller: Caller | None, request: HttpRequest, operation: str, named: Mapping[str, str]
    ) -> bool:
        address = request.peer.address if request.peer else ""
        key = caller.access_key_id if caller is not None else ""
        subject = " ".join((key, address, operation, *named.values()))
        return self._polled.add(subject[:SUBJECT_CHARS_MAX], self._stopwatch()) == 1

    def record(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        named: Mapping[str, Any],
        response: HttpResponse,
        resources: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes an event. All events pass through here, where budgets and field lengths apply."""
        now, address = self._stopwatch(), request.peer.address if request.peer else ""
        if caller is None and self._budget.is_used_up(address, now):
            if self._dropped.add(address) and self._call_later is not None:
                self._call_later(MINUTE, self.tell_of_dropped)
            return
        line = event(source, operation, caller, request, named, response, resources)
        if details is not None:
            line |= {"eventType": "AwsServiceEvent", "serviceEventDetails": details}
        if caller is None:
            self._budget.take(address, now, len(json.dumps(line)))
        self._log.append(line)

    def record_change_of_users(self) -> None:
        """Records that somebody with access to the data folder has changed users or policies."""
        self.record_own("iam", "UpdateUsers")

    def tell_of_dropped(self) -> None:
        """Writes how many events were dropped since the last such line, if any were."""
        details = self._dropped.take()
        if details is not None:
            self.record_own("partita", DROP_EVENTS, details)

    def record_own(
        self, source: str, operation: str, details: Mapping[str, Any] | None = None
    ) -> None:
        """Records an event that the server itself has noticed."""
        self.record(source, operation, _SERVER, HttpRequest(), {}, HttpResponse(200), (), details)

    def close(self) -> None:
        self.tell_of_dropped()
        self._log.close()


def _asked(
    request: HttpRequest, target: bytes, rest: tuple[str, RestCall | None] | None
) -> tuple[str, str, Mapping[str, Any] | None]:
    """Returns service, operation, and the members if they are parsed already. The operation is
    empty if there is no such service or path."""
    if rest is not None:
        source, call = rest
        return (source, "", {}) if call is None else (source, call.name, call.members)
    service, _, name = target.partition(b".")
    if service not in SOURCES or request.method != b"POST":
        return "partita", "", {}
    return SOURCES[service], name.decode("latin-1"), None
