"""How a server and its companion speak: frames over a socket that only they have.

A frame is its length, a number, a code, and the rest: of a request the code is the length of the
operation's name, which comes before the body; of an answer it is the status. Answers have the
number of their request and may come in any order.
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

import msgspec

from partita.settings import Function

_HEAD = struct.Struct(">IIH")


class Start(msgspec.Struct):
    """The content of the first frame: what a companion needs to start."""

    endpoint: str
    folder: str
    """Where functions are looked for."""
    functions: tuple[Function, ...] = ()
    time_scale: float = 1.0
    credentials: tuple[str, ...] = ()
    """An access key and its secret, where the server asks for signatures."""
    certificate: str = ""
    """The file of the server's own, where it speaks TLS."""
    client_certificate: str = ""
    """The file of one that the server takes, with its key, where it asks for one."""


class Frame(NamedTuple):
    number: int
    code: int
    content: bytes


def encode(frame: Frame) -> bytes:
    return _HEAD.pack(len(frame.content), frame.number, frame.code) + frame.content


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
