"""How a server and its companion speak: frames over a socket that only they have.

A frame is its length, a number, a code, and the rest: of a request the code is the length of what
names the operation, which comes before the body; of an answer it is the status. Answers have the
number of their request and may come in any order.

A REST request is named by its first line and its headers, as on the wire (`rest_operation`).
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

import msgspec

from partita.server.http.messages import HttpResponse
from partita.settings import Settings

_HEAD = struct.Struct(">IIH")
_ANSWER = struct.Struct(">HH")


class Start(msgspec.Struct):
    """The content of the first frame: what a companion needs to start."""

    endpoint: str
    folder: str
    """Where functions are looked for."""
    settings: Settings = Settings()
    time_scale: float = 1.0
    operations: tuple[str, ...] = ()
    """Those that the server has built, by their names in its registry."""
    since: float = 0.0
    """When the server was ready."""
    last_sequences: dict[str, str] = {}
    """What the streams that triggers read had last, just then."""
    may_upload: bool = False
    """Whether clients may bring code of their own."""
    credentials: tuple[str, ...] = ()
    """An access key and its secret, where the server asks for signatures."""
    scheduler_credentials: tuple[str, ...] = ()
    """The same for what schedules call."""
    certificate: str = ""
    """The file of the server's own, where it speaks TLS."""
    client_certificate: str = ""
    """The file of one that the server takes, with its key, where it asks for one."""
    bucket_key: str = ""
    """Where encryption is on, what objects in folders are sealed with: `file:PATH`, or `keys:` and
    the keys. Only for the companion that writes such objects."""
    is_encrypted: bool = False
    """Whether the server encrypts its data at rest."""
    fence: str = ""
    """The fencing token of the server, where it leads others."""


class Frame(NamedTuple):
    number: int
    code: int
    content: bytes


def encode(frame: Frame) -> bytes:
    return _HEAD.pack(len(frame.content), frame.number, frame.code) + frame.content


def decode(content: bytes) -> Frame:
    """A whole frame."""
    _, number, code = _HEAD.unpack_from(content)
    return Frame(number, code, content[_HEAD.size :])


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None at the end."""
    try:
        length, number, code = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        return Frame(number, code, await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def request(number: int, operation: bytes, body: bytes) -> bytes:
    return encode(Frame(number, len(operation), operation + body))


def operation_and_body(frame: Frame) -> tuple[str, bytes]:
    return frame.content[: frame.code].decode("latin-1"), frame.content[frame.code :]


def answer(number: int, response: HttpResponse) -> bytes:
    lengths = _ANSWER.pack(len(response.content_type), len(response.headers))
    content = b"".join((lengths, response.content_type, response.headers, response.body))
    return encode(Frame(number, response.status, content))


def response_in(frame: Frame) -> HttpResponse:
    type_bytes, header_bytes = _ANSWER.unpack_from(frame.content)
    headers_at = _ANSWER.size + type_bytes
    body_at = headers_at + header_bytes
    return HttpResponse(
        frame.code,
        frame.content[body_at:],
        frame.content[_ANSWER.size : headers_at],
        frame.content[headers_at:body_at],
    )
