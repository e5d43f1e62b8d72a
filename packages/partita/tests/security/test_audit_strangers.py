"""Unauthenticated requests cannot push the actions of real users out of the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from partita.foundation.service_limits import KB, MB
from partita.server.http.http_messages import HttpRequest, HttpResponse, Peer
from partita.server.security.abuse_limits import KNOWN_MAX
from partita.server.security.audit.audit_budget import DAY, MINUTE, OF_ADDRESS, OF_ALL
from partita.server.security.audit.audit_events import LINE_BYTES_MAX
from partita.server.security.audit.audit_log import AuditLog
from partita.server.security.audit.audit_recorder import AuditRecorder
from partita.server.security.identities.callers import Caller
from partita.server.security.identities.user_directory import ACCOUNT_ID
from partita.server.security.policies.policy_decision import CallerPolicies, Principal
from testkit.servers import processes
from testkit.servers.users import ADMINISTRATOR, TABLE, People, events

FORM = "application/x-www-form-urlencoded"
JSON = "application/x-amz-json-1.0"
REFUSED = HttpResponse(400, b'{"__type":"x#MissingAuthenticationTokenException"}')


def test_strangers_share_a_budget_over_all_paths(tmp_path: Path) -> None:
    people = People(tmp_path)
    key = people.add(policies=[ADMINISTRATOR])
    long = "x" * 30_000
    target = f"DynamoDB_20120810.DeleteTable{'y' * 4000}"
    # Nothing is read of a large body: its head is enough.
    large = {"Content-Type": JSON, "X-Amz-Target": target, "Content-Length": str(MB)}
    requests: list[tuple[str, str, str | None, dict[str, str]]] = [
        ("POST", "/", f"Action={long}&Version=1", {"Content-Type": FORM}),
        ("POST", "/", None, {"Content-Type": FORM, "Content-Length": str(MB)}),
        (
            "POST",
            "/",
            json.dumps({"TableName": long}),
            {"Content-Type": JSON, "X-Amz-Target": target},
        ),
        ("POST", "/", None, large),
        ("POST", "/", "{}", {"Content-Type": JSON, "X-Amz-Target": "None.Such"}),
        ("GET", f"/?Action={'a' * 4000}&X-Amz-Signature=0", None, {}),
        ("GET", f"/{'p' * 4000}", None, {"User-Agent": "u" * 4000}),
        ("GET", "/metrics", None, {"Authorization": "Basic YTpi"}),
        ("GET", f"/2015-03-31/functions/{quote('é' * 600)}", None, {}),
        ("GET", f"/2015-03-31/functions/{'f' * 4000}/code?X-Amz-Signature=0", None, {}),
    ]
    rounds = 9
    with processes.starting() as start:
        people.server = server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        for _ in range(rounds):
            for method, path, body, headers in requests:
                connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
                connection.request(method, path, body, headers)
                status = connection.getresponse().status
                connection.close()
                assert 400 <= status < 500, (path[:40], status)
        # Those who are known are written down all the same.
        people.client(key).create_table(TableName="kept", **TABLE)
        assert server.terminate()[0] == 0
    found = events(tmp_path)
    lines = (tmp_path / "audit" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    assert max(map(len, lines)) < 8 * KB
    strangers = [one for one in found if one["userIdentity"]["type"] == "Unknown"]
    lines_max = OF_ADDRESS[MINUTE].lines_max
    assert len(strangers) <= lines_max
    assert {one["eventSource"].partition(".")[0] for one in strangers} == {
        *("sts", "dynamodb", "partita", "lambda")
    }
    assert not any("x" * 100 in json.dumps(one["requestParameters"]) for one in strangers)
    *_, created, dropped = found
    assert created["eventName"] == "CreateTable"
    assert dropped["eventName"] == "DropEvents"
    assert dropped["eventType"] == "AwsServiceEvent"
    details = dropped["serviceEventDetails"]
    assert details["droppedEvents"] == rounds * len(requests) - len(strangers) > 0
    assert details["addresses"] == 1
    assert processes.run("audit", "verify", "--data", tmp_path).returncode == 0


# The recorder, with a clock of our own


class Recording:
    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.folder = folder
        self.timers: list[tuple[float, Any]] = []
        self.recorder = AuditRecorder(
            AuditLog(folder), stopwatch=lambda: self.now, call_later=self._call_later
        )

    def _call_later(self, seconds: float, call: Any) -> None:
        self.timers.append((self.now + seconds, call))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self.timers if at <= self.now]
        self.timers = [one for one in self.timers if one[0] > self.now]
        for call in due:
            call()

    def refuse(self, address: str, caller: Caller | None = None, agent: bytes = b"") -> None:
        request = HttpRequest(b"POST", b"/", {b"user-agent": agent})
        request.peer = Peer(address)
        self.recorder.record("dynamodb", "DeleteTable", caller, request, {}, REFUSED)

    def lines(self, name: str = "DeleteTable") -> list[dict[str, Any]]:
        return [one for one in events(self.folder.parent, "log") if one["eventName"] == name]

    def dropped(self) -> list[tuple[int, int]]:
        details = [one["serviceEventDetails"] for one in self.lines("DropEvents")]
        return [(one["droppedEvents"], one["addresses"]) for one in details]


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    found = Recording(tmp_path / "log")
    yield found
    found.recorder.close()


def somebody() -> Caller:
    arn = f"arn:aws:iam::{ACCOUNT_ID}:user/somebody"
    return Caller(Principal(arn, ACCOUNT_ID), "User", "AIDA", "AKIA", CallerPolicies(identity=()))


def test_one_address_has_its_share(recording: Recording) -> None:
    most = OF_ADDRESS[MINUTE].lines_max
    for _ in range(most + 5):
        recording.refuse("10.0.0.1")
    assert len(recording.lines()) == most
    recording.refuse("10.0.0.2")
    assert len(recording.lines()) == most + 1
    recording.pass_by(MINUTE + 1)
    recording.refuse("10.0.0.1")
    assert len(recording.lines()) == most + 2


def test_all_addresses_together_have_theirs_however_many_they_are(recording: Recording) -> None:
    for number in range(KNOWN_MAX + 2000):
        recording.refuse(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(recording.lines()) == OF_ALL[MINUTE].lines_max


def test_bytes_count_as_lines_do(recording: Recording) -> None:
    for _ in range(OF_ADDRESS[MINUTE].lines_max):
        recording.refuse("10.0.0.1", agent=b"\xff" * 100_000)
    path = recording.folder / "audit.jsonl"
    assert path.stat().st_size < OF_ADDRESS[MINUTE].bytes_max + LINE_BYTES_MAX
    assert recording.lines() and len(recording.lines()) < OF_ADDRESS[MINUTE].lines_max


def test_nor_do_they_drive_it_out_day_after_day(recording: Recording) -> None:
    size = 0
    for minute in range(24 * 60 - 1):
        if minute % 10 == 0:
            for number in range(OF_ALL[MINUTE].lines_max):
                recording.refuse(f"10.0.{minute % 256}.{number % 256}")
        recording.pass_by(MINUTE)
    size = sum(path.stat().st_size for path in recording.folder.glob("*.jsonl"))
    assert OF_ALL[DAY].bytes_max / 2 < size < OF_ALL[DAY].bytes_max + 2 * MB


def test_a_line_says_how_many_were_dropped_when_the_window_is_over(recording: Recording) -> None:
    most = OF_ADDRESS[MINUTE].lines_max
    for address in ("10.0.0.1", "10.0.0.2"):
        for _ in range(most + 5):
            recording.refuse(address)
    assert recording.dropped() == []
    recording.pass_by(MINUTE)
    assert recording.dropped() == [(10, 2)]
    recording.pass_by(10 * MINUTE)
    assert recording.dropped() == [(10, 2)]


def test_who_is_known_is_never_dropped_and_nor_are_changes_of_users(recording: Recording) -> None:
    most = OF_ADDRESS[MINUTE].lines_max
    for _ in range(most + 5):
        recording.refuse("10.0.0.1")
    for _ in range(2 * most):
        recording.refuse("10.0.0.1", somebody())
        recording.recorder.record_change_of_users()
    assert len(recording.lines()) == 3 * most
    assert len(recording.lines("UpdateUsers")) == 2 * most


def test_every_field_has_a_maximum(recording: Recording) -> None:
    request = HttpRequest(b"POST", b"/", {b"user-agent": b"\xff" * MB})
    request.peer = Peer("f" * MB, certificate="é" * MB)
    names: dict[str, Any] = {f"{number}Name": "é" * MB for number in range(3000)}
    names |= {"RequestItems": [f"{number}{'é' * 2000}" for number in range(3000)]}
    denied = json.dumps({"__type": "AccessDeniedException", "Message": "é" * MB})
    recording.recorder.record(
        *("s" * MB, "O" * MB, somebody(), request, names),
        HttpResponse(400, denied.encode()),
        ["arn:" + "é" * MB] * 3000,
    )
    (line,) = (recording.folder / "audit.jsonl").read_bytes().splitlines()
    assert len(line) < LINE_BYTES_MAX
    event = json.loads(line)
    assert len(event["eventName"]) <= 128 and len(event["userAgent"]) <= 256
    assert event["userIdentity"]["accessKeyId"] == "AKIA"
