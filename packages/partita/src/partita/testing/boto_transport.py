"""boto3 without a network: a hook answers botocore's requests instead of sending them.

botocore does everything else as usual: it validates parameters, signs, verifies the checksum of the
response, parses it, raises errors and retries. boto3 is imported only when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from partita.foundation.service_limits import REQUEST_BODY_BYTES_MAX
from partita.installation.optional_packages import packages_required
from partita.server.http.http_messages import HttpRequest, HttpResponse
from partita.server.protocol.aws_responses import AwsResponses

Answer = Callable[[HttpRequest], HttpResponse]

REGION = "us-east-1"
CREDENTIALS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
}
EVENTS = ("before-send.dynamodb", "before-send.dynamodb-streams", "before-send.kinesis")
TARGETS = (b"DynamoDB", b"Kinesis_")

# boto3's sessions are not thread-safe; its clients are.
_making = Lock()
_responses = AwsResponses()


class BotocoreHook:
    """Answers the requests of the clients that it is attached to. `answer` may be replaced."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def attach(self, events: Any) -> None:
        for event in EVENTS:
            events.register_first(event, self)

    def __call__(self, request: Any, **event: Any) -> Any:
        """Returns a botocore AWSResponse for a botocore AWSPreparedRequest."""
        from botocore.awsrequest import AWSResponse

        http_request = _request(request)
        if len(http_request.body) > REQUEST_BODY_BYTES_MAX:
            response = HttpResponse(413)
        else:
            response = self.answer(http_request)
        head, _, body = _responses.encode(response, http_request).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")[1:]
        headers = dict(line.split(": ", 1) for line in lines)
        return AWSResponse(request.url, response.status, headers, _Body(body))


class _Body:
    """The part of urllib3's response that botocore uses."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


def _request(prepared: Any) -> HttpRequest:
    address = urlsplit(prepared.url)
    target = f"{address.path or '/'}?{address.query}" if address.query else address.path or "/"
    headers = {name.lower().encode(): _bytes(value) for name, value in prepared.headers.items()}
    # Compressing a response that stays in the process would only waste time.
    headers.pop(b"accept-encoding", None)
    body = prepared.body.read() if hasattr(prepared.body, "read") else prepared.body
    return HttpRequest(prepared.method.encode(), target.encode(), headers, _bytes(body or b""))


def _bytes(content: str | bytes | bytearray) -> bytes:
    return content.encode() if isinstance(content, str) else bytes(content)


def client(answer: Answer, **parameters: Any) -> Any:
    with _making:
        made = _shared_session().client("dynamodb", **parameters)
    BotocoreHook(answer).attach(made.meta.events)
    return made


def resource(answer: Answer, **parameters: Any) -> Any:
    return exchangeable_resource(BotocoreHook(answer), **parameters)


def exchangeable_resource(hook: BotocoreHook, **parameters: Any) -> Any:
    """Returns a resource whose requests the hook answers; the hook's `answer` may be replaced."""
    with _making:
        made = _shared_session().resource("dynamodb", **parameters)
    hook.attach(made.meta.client.meta.events)
    return made


def resource_at(endpoint_url: str) -> Any:
    """Returns a resource that sends its requests over the wire."""
    with _making:
        return _shared_session().resource("dynamodb", endpoint_url=endpoint_url)


def session(answer: Answer, **parameters: Any) -> Any:
    with _making:
        made = _new_session(**parameters)
    BotocoreHook(answer).attach(made.events)
    return made


def _new_session(**parameters: Any) -> Any:
    boto3 = _boto3()
    import botocore.session

    botocore_session = botocore.session.get_session()
    botocore_session.register_component("data_loader", _loader())
    return boto3.Session(
        botocore_session=botocore_session, **{"region_name": REGION, **CREDENTIALS, **parameters}
    )


@cache
def _shared_session() -> Any:
    return _new_session()


@cache
def _loader() -> Any:
    """Returns a loader for all sessions: it caches service descriptions, which are slow to read."""
    from botocore.loaders import create_loader

    return create_loader()


def _boto3() -> Any:
    with packages_required("partita[testing]"):
        import boto3
    return boto3


@contextmanager
def intercepted(answer: Answer) -> Iterator[None]:
    """Answers the DynamoDB and Kinesis requests of every botocore client in this process."""
    from unittest.mock import patch

    from botocore.httpsession import URLLib3Session

    hook = BotocoreHook(answer)
    send = URLLib3Session.send

    def answer_or_send(http_session: Any, request: Any) -> Any:
        is_ours = _bytes(request.headers.get("X-Amz-Target", b"")).startswith(TARGETS)
        return hook(request) if is_ours else send(http_session, request)

    region = {} if "AWS_DEFAULT_REGION" in os.environ else {"AWS_DEFAULT_REGION": REGION}
    with (
        patch.object(URLLib3Session, "send", answer_or_send),
        patch.dict(os.environ, {**ENVIRONMENT, **region}),
        _default_session_apart(),
    ):
        yield


@contextmanager
def _default_session_apart() -> Iterator[None]:
    """Gives `boto3.client` a new default session meanwhile, with the credentials of the test."""
    try:
        import boto3
    except ImportError:
        yield
        return
    kept = boto3.DEFAULT_SESSION
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        boto3.DEFAULT_SESSION = kept
