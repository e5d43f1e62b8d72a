"""The errors of a call, and which of them are worth a retry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from partita.errors import PartitaError

# From botocore's retry rules.
THROTTLING = {
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
}
UNREACHABLE = "EndpointUnreachable"


class ClientError(PartitaError):
    """Raised when a service refuses a request. `code` is AWS's name for the reason."""

    def __init__(self, code: str, message: str, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message
        self.status = status
        self.body = body
        """The whole response: CancellationReasons, Item, ..."""

    @property
    def is_passing(self) -> bool:
        """True when the same request may succeed a little later."""
        return self.status >= 500 or self.code in THROTTLING


class Unreachable(ClientError):
    """Raised when no response came; the request may have been carried out or not."""

    def __init__(self, endpoint: str, reason: object) -> None:
        super().__init__(UNREACHABLE, f"No answer from {endpoint}: {reason}.", 0, {})

    @property
    def is_passing(self) -> bool:
        return True


def refusal(
    status: int, content: bytes, headers: Mapping[bytes, bytes] | None = None
) -> ClientError:
    """Returns the error of a response. REST services name it in a header, others in the body."""
    named = (headers or {}).get(b"x-amzn-errortype", b"").decode("latin-1").partition(":")[0]
    try:
        body = orjson.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        text = content[:200].decode("utf-8", "replace")
        return ClientError(named or f"Http{status}", text, status, {})
    code = named or str(body.get("__type", f"Http{status}")).rpartition("#")[2]
    message = body.get("message") or body.get("Message") or ""
    return ClientError(code, str(message), status, body)
