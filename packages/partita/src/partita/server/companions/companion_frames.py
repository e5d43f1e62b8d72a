"""The protocol between a server and its companion: frames over a socket pair.

A frame is a length (4 bytes), a number (4), a code (2) and content. In a request, the content is
the name of the operation and the body, and the code is the length of the name. In an answer, the
code is the HTTP status. Answers have the number of their request and may come in any order.

A REST request is named by its first line and its headers, as on the wire (`rest_operation`).
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

import msgspec

from partita.foundation.server_settings import ServerSettings
from partita.server.http.http_messages import HttpResponse

_HEAD = struct.Struct(">IIH")
_ANSWER = struct.Struct(">HH")


class CompanionStart(msgspec.Struct):
    """The content of the first frame: the configuration that a companion starts with."""

    endpoint: str
    folder: str
    """The folder in which functions are looked up."""
    settings: ServerSettings = ServerSettings()
    time_scale: float = 1.0
    operations: tuple[str, ...] = ()
    """The operations that the server implements, by their names in its registry."""
    since: float = 0.0
    """The time at which the server was ready."""
    last_sequences: dict[str, str] = {}
    """The last sequence numbers, at that time, of the streams that triggers read."""
    may_upload: bool = False
    """True if clients may upload code."""
    credentials: tuple[str, ...] = ()
    """An access key and its secret, if the server requires signatures."""
    scheduler_credentials: tuple[str, ...] = ()
    """The access key and secret for calls by schedules."""
    certificate: str = ""
    """The file of the server's certificate, if it speaks TLS."""
    client_certificate: str = ""
    """The file of a client certificate with its key, if the server asks for one."""
    bucket_key: str = ""
    """The key that objects in folders are encrypted with: `file:PATH`, or `keys:` and the keys.
    Only set with encryption, for a companion that writes objects."""
    is_encrypted: bool = False
    """True if the server encrypts its data at rest."""
    fence: str = ""
    """The fencing token of the server, if it is the leader of several servers."""


class Frame(NamedTuple):
    number: int
    code: int
    content: bytes


def encode(frame: Frame) -> bytes:
    return _HEAD.pack(len(frame.content), frame.number, frame.code) + frame.content


def decode(content: bytes) -> Frame:
    """Decodes one complete frame."""
    _, number, code = _HEAD.unpack_from(content)
    return Frame(number, code, content[_HEAD.size :])


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """Reads the next frame. Returns None at the end of the stream."""
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
