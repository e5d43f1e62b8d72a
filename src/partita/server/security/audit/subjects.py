"""What a request is about: the resources on which it needs rights.

Who may do something is decided by the same table, so an operation that has rights has its
resources in the audit log, too, whatever its members are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from partita.database.operations.context import Service
from partita.errors import DynamoDBError
from partita.limits import MB
from partita.server.dispatch import Operation
from partita.server.http.messages import HttpRequest
from partita.server.protocol import codec
from partita.server.responses import CBOR_1_1
from partita.server.rest import Asked
from partita.server.security.rights.needs import Need, Rights

DECODED_BYTES_MAX: Final = MB
"""Larger requests are not decoded for the log: only the names on their surface are in it."""


class Subjects:
    def __init__(
        self,
        service: Service,
        operations: Mapping[bytes, Operation],
        rights: Mapping[str, Rights],
        forwarded_rights: Mapping[str, Mapping[str, Rights]],
    ) -> None:
        self._service = service
        self._operations = operations
        self._rights = rights
        self._forwarded_rights = forwarded_rights

    def find(self, request: HttpRequest, rest: tuple[str, Asked] | None) -> Sequence[str]:
        """The ARNs of what a request is about; none for one that is wrong or very large. `rest` is
        what is asked of a service whose protocol is REST."""
        if rest is None and len(request.body) > DECODED_BYTES_MAX:
            return ()
        try:
            needs = self._needs(request, rest)
        except DynamoDBError:
            return ()
        return tuple(dict.fromkeys(one.resource for one in needs))

    def _needs(self, request: HttpRequest, rest: tuple[str, Asked] | None) -> Sequence[Need]:
        if rest is not None:
            service, (name, members) = rest
            rights = self._forwarded_rights[service].get(name)
            return () if rights is None else rights(self._service, members)
        target = request.headers.get(b"x-amz-target", b"")
        operation = self._operations.get(target)
        body = codec.decode(json_body(request) or b"{}")
        if operation is not None:
            operation.validate(body)
            return self._rights[operation.name](self._service, body)
        prefix, _, named = target.decode("latin-1").partition(".")
        rights = self._forwarded_rights.get(prefix, {}).get(named)
        return () if rights is None else rights(self._service, body)


def json_body(request: HttpRequest) -> bytes:
    """The body of a request as JSON, which those of Kinesis may have in CBOR."""
    if request.headers.get(b"content-type") != CBOR_1_1:
        return request.body
    # Imported with the first that needs it.
    from partita.server.cbor import to_json

    return to_json(request.body)
