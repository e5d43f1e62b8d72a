"""Which requests are written down, and when: with their answers, before these are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

import orjson

from partita.errors import DynamoDBError, InternalServerError
from partita.server.http.messages import HttpRequest, HttpResponse, Reply
from partita.server.protocol.envelope import error_body
from partita.server.responses import JSON_1_0
from partita.server.rest import Asked
from partita.server.security.audit.events import (
    NAMELESS,
    Sampled,
    changes_something,
    event,
    is_asked_for,
    is_data,
    named_in,
)
from partita.server.security.audit.log import AuditLog
from partita.server.security.identities.callers import Caller
from partita.server.security.limits import Window

SOURCES: Final = {
    b"DynamoDB_20120810": "dynamodb",
    b"DynamoDBStreams_20120810": "dynamodb",
    b"Kinesis_20131202": "kinesis",
    b"AWSStepFunctions": "states",
    b"PartitaAccess": "iam",
    b"PartitaBackup": "partita",
}
UNKNOWN_SECONDS: Final = 60.0
UNKNOWN_MAX, UNKNOWN_TOTAL_MAX = 60, 600
"""In that time, of one address and of all."""
NOT_WRITABLE: Final = (
    "The audit log cannot be written, so nothing may be changed: there must be space on its disk."
)


class Recorder:
    def __init__(self, log: AuditLog, sampled: Sequence[Sampled] = ()) -> None:
        self._log = log
        self._sampled = sampled
        self._unrecorded: set[bytes] = set()
        """Targets of requests for data, when none are asked for."""
        self._unknown = Window(UNKNOWN_SECONDS)

    def recorded(
        self,
        request: HttpRequest,
        caller: Caller | None,
        reply: Reply,
        rest: tuple[str, Asked | None] | None,
        resources: Callable[[HttpRequest], Sequence[str]],
    ) -> Reply | None:
        """What to reply with; None when the request has been refused already. `rest` is what is
        asked of a service whose protocol is REST; `resources` finds the ARNs of what a request is
        about that gives no names."""
        target = request.headers.get(b"x-amz-target", b"")
        if rest is None and target in self._unrecorded:
            return reply
        members: Any = None
        if rest is not None:
            source, asked = rest
            if asked is None:
                return reply
            operation, members = asked
        else:
            service, _, name = target.partition(b".")
            found = SOURCES.get(service)
            if found is None or request.method != b"POST":
                return reply
            source, operation = found, name.decode("latin-1")
        if caller is not None and caller.kind == "AWSService":
            # A part of this server, for somebody whose request is written down.
            return reply
        if is_data(operation):
            body = (members or named_in(request.body)) if self._sampled else None
            arns = resources(request) if body is not None and operation in NAMELESS else ()
            if not is_asked_for(self._sampled, body, arns):
                if rest is None and not self._sampled:
                    self._unrecorded.add(target)
                return reply
            if caller is None and not self._takes_unknown(request):
                return reply
        elif caller is None:
            if not self._takes_unknown(request):
                return reply
            body = members or named_in(request.body)
        else:
            body = members or _decoded(request.body)
            if changes_something(operation) and not self._log.is_writable:
                error: DynamoDBError = InternalServerError(NOT_WRITABLE)
                reply(HttpResponse(error.status, error_body(error), JSON_1_0))
                return None
        peer, headers = request.peer, request.headers

        def write_down(response: HttpResponse) -> None:
            asked = HttpRequest(request.method, request.target, headers)
            asked.peer = peer
            self.record(source, operation, caller, asked, body, response)
            reply(response)

        return write_down

    def _takes_unknown(self, request: HttpRequest) -> bool:
        """Whether a request that nobody known has signed is written down: whoever sends many of
        them must not drive out what others have done."""
        now, address = monotonic(), request.peer.address if request.peer else ""
        if self._unknown.add(address, now) > UNKNOWN_MAX:
            return False
        return self._unknown.add("", now) <= UNKNOWN_TOTAL_MAX

    def record(
        self,
        source: str,
        operation: str,
        caller: Caller | None,
        request: HttpRequest,
        body: Mapping[str, Any] | None,
        response: HttpResponse,
    ) -> None:
        self._log.append(event(source, operation, caller, request, body, response))

    def record_change_of_users(self) -> None:
        """Users and policies were changed by somebody who can write to the data folder."""
        asked = HttpRequest(b"", b"", {})
        self._log.append(event("iam", "UpdateUsers", None, asked, {}, HttpResponse(200)))

    def close(self) -> None:
        self._log.close()


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except ValueError:
        return None
