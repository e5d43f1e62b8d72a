"""What an attack on the second round found: what strangers hold, what they and users without
rights cost, and whose turn it is."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest

from partita.client import Credentials
from partita.console.console_sessions import SESSIONS_MAX, ConsoleSessions
from partita.database.execution.database_interface import DatabaseInterface
from partita.errors import ThrottlingException
from partita.foundation.service_limits import KB, MB
from partita.server.admission import Admission
from partita.server.http.connection_limits import ConnectionLimits
from partita.server.http.http_messages import HttpResponse, Responses
from partita.server.http.listener import Listener
from partita.server.large_requests.large_request_queue import (
    WAITING_BYTES_PER_CALLER_MAX,
    CallerTurns,
    LargeRequest,
    LargeRequestQueue,
)
from partita.server.security.identities.user_directory import AccessKey
from testkit.attacks.strangers import Meter, Stranger
from testkit.servers.users import People

BODY_BYTES = 8 * MB
COOKIE = b'a="' + b"\\" * 15_000 + b'"'
"""Python's http.cookies takes time that grows with the square of its length."""
COOKIE_SECONDS_MAX = 0.1
"""Before the fix it took 0.4 s on a busy machine. A request without a cookie takes a thousandth of
that.
"""
OWN_SECONDS_MAX = 0.5
"""Before the fix it took seconds, in plain Python."""


@pytest.fixture(scope="module")
def nobody(people: People) -> AccessKey:
    """A user without rights."""
    return people.add()


@pytest.fixture
def stranger(people: People) -> Iterator[Stranger]:
    assert people.server is not None
    one = Stranger(people.server.port)
    yield one
    one.close()


# What strangers hold


@pytest.mark.parametrize("path", ["/", "/ping", "/health?x"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_large_body_of_a_public_page_is_not_read(
    people: People, method: str, path: str
) -> None:
    assert people.server is not None
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", people.server.port), 10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(64 * KB).startswith(b"HTTP/1.1 401 "), "before any of it is sent"


def test_small_unfinished_bodies_take_nothing_from_large_ones() -> None:
    async def status() -> bytes:
        listener = Listener(
            lambda request, reply: reply(HttpResponse(200)),
            Responses(),
            limits=ConnectionLimits(bodies_bytes_max=256 * KB),
        )
        port = await listener.start("127.0.0.1", 0)
        small = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (64 * KB) + bytes(60 * KB)
        unfinished = []
        for _ in range(10):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(small)
            await writer.drain()
            unfinished.append(writer)
        await asyncio.sleep(0.2)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = bytes(200 * KB)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answered = (await reader.readuntil(b"\r\n")).split()[1]
        for one in (*unfinished, writer):
            one.close()
        await listener.stop()
        assert listener.bodies_bytes == 0
        return answered

    assert asyncio.run(status()) == b"200"


# What strangers cost


@pytest.mark.parametrize("path", ["session", "requests"])
def test_a_cookie_costs_nothing(people: People, stranger: Stranger, path: str) -> None:
    assert people.server is not None
    meter = Meter(people.server.process.pid)
    message = b"GET /console/api/%b HTTP/1.1\r\nHost: localhost\r\nCookie: %b\r\n\r\n"
    stranger.send(message % (path.encode(), b"a=b"))
    spent = []
    for _ in range(3):
        meter.begin()
        stranger.send(message % (path.encode(), COOKIE))
        spent.append(meter.spent().own_seconds)
    assert min(spent) < COOKIE_SECONDS_MAX


# What users without rights cost


def statements(numbers: Iterator[int], amount: int) -> list[dict[str, str]]:
    """Returns different statements of the largest length."""
    return [
        {"Statement": f"SELECT * FROM Nobodys WHERE {'NOT ' * 1900} pk = '{next(numbers)}'"}
        for _ in range(amount)
    ]


@pytest.mark.parametrize(
    ("operation", "member", "amount"),
    [
        ("batch_execute_statement", "Statements", 25),
        ("execute_transaction", "TransactStatements", 100),
    ],
)
def test_long_statements_of_one_without_rights_keep_nobody_waiting(
    people: People, nobody: AccessKey, operation: str, member: str, amount: int
) -> None:
    assert people.server is not None
    client, meter = people.client(nobody), Meter(people.server.process.pid)
    numbers = count(1)
    spent = []
    for _ in range(2):
        meter.begin()
        try:
            getattr(client, operation)(**{member: statements(numbers, amount)})
        except client.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        spent.append(meter.spent().own_seconds)
    assert min(spent) < OWN_SECONDS_MAX


def test_long_statements_are_decided_with_the_rights_of_their_caller(
    people: People, admin: Any, table: Any, nobody: AccessKey
) -> None:
    name = table()
    inserts = [
        f"INSERT INTO \"{name}\" VALUE {{'pk': 'a', 'sk': '{number}', 'text': '{'x' * 5000}'}}"
        for number in range(8)
    ]
    asked = [{"Statement": text} for text in inserts]
    client = people.client(nobody)
    with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
        client.batch_execute_statement(Statements=asked)
    assert admin.scan(TableName=name)["Count"] == 0
    assert not any(
        "Error" in one for one in admin.batch_execute_statement(Statements=asked)["Responses"]
    )
    assert admin.scan(TableName=name)["Count"] == len(asked)


# StubAdmission turn it is


class StubAdmission:
    """Stands in for an Admission, which cannot be subclassed when it is compiled."""

    def __init__(self, whose: str) -> None:
        self.whose = whose


class NoDatabase:
    """A database that decides nothing, so that requests only wait."""

    def deferred(self, done: Any) -> Any:
        return done


def asked_by(whose: str, body: bytes = b"") -> LargeRequest:
    admission = cast(Admission, StubAdmission(whose))
    return LargeRequest("PutItem", body, admission, lambda: None, lambda result: None)


def test_callers_with_large_requests_take_turns() -> None:
    async def order() -> list[str]:
        turns = CallerTurns()
        for whose in ("many", "many", "many", "one", "other", "one"):
            turns.put(asked_by(whose))
        return [(await turns.get()).admission.whose for _ in range(6)]

    assert asyncio.run(order()) == ["many", "one", "other", "many", "one", "many"]


def test_one_caller_does_not_fill_the_queue_of_large_requests() -> None:
    async def refused() -> list[str]:
        requests = LargeRequestQueue(cast(DatabaseInterface, NoDatabase()))
        # Nothing is decided meanwhile.
        requests._running = asyncio.create_task(asyncio.sleep(60))
        found: list[str] = []
        for whose in ("many", "many", "many", "one"):
            body = bytes(WAITING_BYTES_PER_CALLER_MAX // 2)

            def done(result: object, whose: str = whose) -> None:
                assert isinstance(result, ThrottlingException)
                found.append(whose)

            requests.forward(
                "PutItem", body, cast(Admission, StubAdmission(whose)), lambda: None, done
            )
        await requests.stop()
        return found

    assert asyncio.run(refused()) == ["many"]


def test_nobody_drives_out_the_sessions_of_others_at_the_console() -> None:
    sessions = ConsoleSessions(time.time)
    mine = sessions.open(Credentials("A", "a"), "user/me").encode()
    for _ in range(SESSIONS_MAX + 1):
        last = sessions.open(Credentials("B", "b"), "user/other").encode()
    assert sessions.find(b"x=y; partita-console=" + mine) is not None
    assert sessions.find(b"partita-console=" + last) is not None
