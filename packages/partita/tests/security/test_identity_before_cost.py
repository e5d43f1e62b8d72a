"""Identity before cost: who has not shown who they are costs next to nothing, whatever they send.

Each request of the corpus goes to a real server, and what that spends on it is measured from
outside. The ordinary suite sends a seeded sample of every kind; `make soak` sends everything.
"""

from __future__ import annotations

import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote

import pytest

from partita.client.aws_services import SERVICES, AwsService
from partita.client.request_signing import Credentials, presigned_query, signed_headers
from testkit.attacks import corpus
from testkit.attacks.corpus import Body, Case
from testkit.attacks.strangers import NEW_HEAP, Meter, Spent, Stranger, seconds_of
from testkit.servers import processes
from testkit.servers.users import ADMINISTRATOR, REGION, People

SECONDS_MAX = 0.020
BYTES_MAX = 5 * corpus.MB
OWN_SECONDS_MAX, KNOWN_SECONDS_MAX, KNOWN_BYTES_MAX = 0.150, 2.0, 640 * corpus.MB
"""Limits for an authenticated user without rights: time in the server process, time and memory in
all.
"""
TRIES = 3
"""The lowest cost of these tries counts, because a server has other work, and loads some parts
late.
"""
DATA_BYTES_MAX = 2 * corpus.MB * 1024
"""The server's memory limit. A request that exceeds it ends the server and fails the test."""
FAILURES_MAX = 25
SEED = 28
UNPACKABLE = b"The Content-Encoding"
"""The beginning of the one 500 response that AWS sends, too (see tests/wire/test_encodings.py)."""
SAMPLE = 2500
SAMPLE_SIGNED = 1200
SAMPLE_KNOWN = 250

Send = Callable[[Case], None]
Within = Callable[[Spent], bool]


class Siege:
    """A server that is started again whenever a request has ended it."""

    def __init__(self, folder: Path) -> None:
        self.people = People(folder)
        self.people.add(policies=[ADMINISTRATOR])
        self.owner = self.people.add(policies=[ADMINISTRATOR])
        self.nobody = self.people.add()
        """A user without rights."""
        self._folder = folder
        self.server: processes.Server | None = None
        self._start()

    def _start(self) -> None:
        self.server = processes.Server(
            *("serve", "--auth", "--port", "0", "--data", self._folder),
            *("--limit-failures", "100000000"),
            stderr=None,
            env={**processes.ENVIRONMENT, **NEW_HEAP},
            preexec_fn=_limit_memory,
        )
        self.people.server = self.server
        self.meter = Meter(self.server.process.pid)
        self.stranger = Stranger(self.server.port)

    def spent(self, case: Case, send: Send) -> Spent:
        """Returns the cost of one request, including what the server does after it."""
        self.meter.settle()
        self.meter.begin()
        send(case)
        self.meter.settle()
        return self.meter.spent()

    def send(self, case: Case) -> None:
        status = self.stranger.send(case.message()).status
        if status >= 500:
            raise AssertionError(f"was answered with {status}")

    def send_signed(self, case: Case) -> None:
        """Sends a case as the user without rights. It is signed only now, because signatures
        expire.
        """
        signed = signed_by(self.nobody.id, self.nobody.secret, case)
        answer = self.stranger.send(signed.message())
        if answer.status >= 500 and UNPACKABLE not in answer.body:
            raise AssertionError(f"was answered with {answer.status}")

    def least(self, case: Case, send: Send) -> Spent:
        tries = [self.spent(case, send) for _ in range(TRIES)]
        return Spent(*map(min, zip(*tries, strict=True)))

    def check(self, cases: Iterable[Case], within: Within, send: Send | None = None) -> None:
        """Fails with the names and the costs of all cases that cost too much."""
        found = self._failures(cases, within, send or self.send)
        if found:
            pytest.fail("\n".join(f"{name}: {cost}" for name, cost in found.items()), False)

    def _failures(self, cases: Iterable[Case], within: Within, send: Send) -> dict[str, str]:
        found: dict[str, str] = {}
        before: Case | None = None
        for case in cases:
            try:
                # What is done after an answer counts for the next request, so both are suspected.
                self.meter.begin()
                send(case)
                suspects = () if within(self.meter.spent()) else (before or case, case)
                for one in suspects:
                    spent = self.least(one, send)
                    if not within(spent):
                        found[one.name] = shown(spent)
            except (AssertionError, OSError, ValueError, IndexError) as error:
                found[case.name] = str(error) or repr(error)
                self._revive()
            before = case
            if len(found) >= FAILURES_MAX:
                found["..."] = "and perhaps more"
                break
        return found

    def own_seconds(self) -> float:
        assert self.server is not None
        return seconds_of(self.server.process.pid)

    def _revive(self) -> None:
        assert self.server is not None
        self.stranger.close()
        try:
            self.stranger.send(Case("", "GET", "/health", ()).message())
        except OSError:
            self.stranger.close()
            self.server.process.kill()
            self.server.ended()
            self._start()

    def end(self) -> None:
        assert self.server is not None
        self.stranger.close()
        if self.server.process.poll() is None:
            self.server.process.send_signal(signal.SIGTERM)
        self.server.ended()


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))


def shown(spent: Spent) -> str:
    milliseconds = f"{spent.seconds * 1000:.1f} ms ({spent.own_seconds * 1000:.1f} of its own)"
    return f"{milliseconds}, {spent.bytes / corpus.MB:.1f} MB"


def is_cheap(spent: Spent) -> bool:
    return spent.seconds <= SECONDS_MAX and spent.bytes <= BYTES_MAX


def is_bounded(spent: Spent) -> bool:
    """True if the cost is bounded, for a user whose request is read, hashed, decompressed and
    decoded.
    """
    return (
        spent.own_seconds <= OWN_SECONDS_MAX
        and spent.seconds <= KNOWN_SECONDS_MAX
        and spent.bytes <= KNOWN_BYTES_MAX
    )


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    one = Siege(tmp_path_factory.mktemp("besieged"))
    one.stranger.send(Case("", "GET", "/console", ()).message())
    yield one
    one.end()


# Who asks

SIGNING_NAMES = {one.target: one.signing_name for one in SERVICES.values() if one.target}


def signing_name(case: Case) -> str:
    """Returns the service in the credential scope of a request."""
    headers = dict(case.headers)
    if case.path.startswith(("/schedule", "/tags/")):
        return "scheduler"
    if case.path.startswith("/20"):
        return "lambda"
    if case.method != "POST":
        return "partita"
    if headers.get("Content-Type", "").startswith(corpus.FORM):
        return "sts"
    return SIGNING_NAMES.get(headers.get("X-Amz-Target", "").partition(".")[0], "dynamodb")


def signed_by(key_id: str, secret: str, case: Case) -> Case:
    """Signs a request with a key. With a wrong secret, only the signature is wrong."""
    service = AwsService("", "", "", signing_name(case))
    credentials, now = Credentials(key_id, secret), time.time()
    path, _, query = case.path.partition("?")
    if query:
        action = {} if service.signing_name == "lambda" else {"Action": "GetCallerIdentity"}
        service = service if action == {} else service._replace(signing_name="sts")
        signed = presigned_query(service, REGION, credentials, "localhost", path, action, now, 600)
        return case._replace(path=f"{path}?{signed}")
    given = {"Host": "localhost"}
    given |= {name: value for name, value in case.headers if name == "X-Amz-Target"}
    more = signed_headers(
        service, REGION, credentials, given, case.body, now, case.method, quote(path)
    )
    return case._replace(headers=(*case.headers, *more.items()))


IDENTITIES: dict[str, Callable[[Siege, Case], Case]] = {
    "unsigned": lambda siege, case: case,
    "unknown key": lambda siege, case: signed_by("AKIAIOSFODNN7EXAMPLE", "secret", case),
    "wrong signature": lambda siege, case: signed_by(siege.owner.id, "wrong", case),
}


def sample(seed: int, size: int, *kinds: Callable[[], Iterator[Case]]) -> list[Case]:
    """Returns `size` cases of each kind, the same ones for the same seed."""
    choose = random.Random(seed)
    found: list[Case] = []
    for kind in kinds:
        every = list(kind())
        found += choose.sample(every, min(size, len(every)))
    return found


def each_body() -> Iterator[Case]:
    """Yields each body once, with the target that it is for."""
    for name, body in corpus.bodies().items():
        target = corpus.RECORDS if body.content_type == corpus.CBOR else corpus.BATCH
        yield corpus.case(name, "POST", "/", body, target)


def test_one_whom_nobody_knows_costs_next_to_nothing(siege: Siege) -> None:
    chosen = [*each_body(), *sample(SEED, SAMPLE, *corpus.KINDS_OF_CASES)]
    siege.check(chosen, is_cheap)


@pytest.mark.parametrize("identity", ["unknown key", "wrong signature"])
def test_one_with_a_wrong_signature_costs_no_more(siege: Siege, identity: str) -> None:
    kinds = (corpus.body_cases, corpus.shape_cases)
    chosen = [*each_body(), *sample(SEED, SAMPLE_SIGNED, *kinds)]
    signed = (IDENTITIES[identity](siege, case) for case in chosen)
    siege.check(signed, is_cheap)


@pytest.mark.soak
@pytest.mark.parametrize("identity", IDENTITIES)
def test_so_it_is_with_everything_that_there_is(siege: Siege, identity: str) -> None:
    kinds = corpus.KINDS_OF_CASES if identity == "unsigned" else corpus.KINDS_OF_CASES[:2]
    every = (case for kind in kinds for case in kind())
    siege.check((IDENTITIES[identity](siege, case) for case in every), is_cheap)


LARGEST: dict[str, Callable[[], Body]] = {
    "json arrays": lambda: largest(corpus.JSON_1_0, corpus.json_bodies, "wide arrays"),
    "json depth": lambda: largest(corpus.JSON_1_0, corpus.json_bodies, "deep and closed"),
    "json strings": lambda: largest(corpus.JSON_1_0, corpus.json_bodies, "wide strings"),
    "cbor arrays": lambda: largest(corpus.CBOR, corpus.cbor_bodies, "wide arrays"),
    "cbor text references": lambda: largest(corpus.CBOR, corpus.cbor_bodies, "text references"),
    "form fields": lambda: largest(corpus.FORM, corpus.form_bodies, "fields"),
    "form encoded": lambda: largest(corpus.FORM, corpus.form_bodies, "encoded"),
    "form Action": lambda: largest(corpus.FORM, corpus.form_bodies, "a long Action"),
    "multipart": lambda: largest(corpus.MULTIPART, corpus.multipart_bodies, "parts"),
}
"""The largest bodies of each kind, up to the limit for a body."""


def largest(
    content_type: str, kind: Callable[[int], Iterator[tuple[str, bytes]]], name: str
) -> Body:
    bodies = kind(corpus.LARGEST - corpus.KB)
    return Body(content_type, next(content for one, content in bodies if one == name))


@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_largest_bodies_cost_no_more_than_to_be_read_and_hashed(
    siege: Siege, identity: str
) -> None:
    sign = IDENTITIES[identity]

    def asked(name: str, body: Body) -> Case:
        target = corpus.RECORDS if body.content_type == corpus.CBOR else corpus.BATCH
        return sign(siege, corpus.case(name, "POST", "/", body, target))

    meaningless = Body(corpus.JSON_1_0, bytes(corpus.LARGEST - corpus.KB))
    plain = siege.least(asked("zeros", meaningless), siege.send)
    siege.check(
        (asked(name, make()) for name, make in LARGEST.items()),
        lambda spent: (
            spent.seconds <= 2 * plain.seconds + SECONDS_MAX
            and spent.bytes <= plain.bytes + BYTES_MAX
        ),
    )
    # Received in parts, and joined once.
    assert plain.bytes < 2.5 * corpus.LARGEST, shown(plain)


# One who is known, and may do nothing

P99_SECONDS_MAX = 0.100
KNOWN_KINDS = (corpus.body_cases, corpus.shape_cases)
READ_EVERY_SECONDS = 0.01
REPEATED = 12
REPEATED_SECONDS = 4.0


class Other:
    """Many who read an item meanwhile, one every hundredth of a second. One does it for all: while
    it waits for an answer, those who would have come since wait as well, and are counted."""

    def __init__(self, siege: Siege) -> None:
        self._siege = siege
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.seconds: list[float] = []

    def __enter__(self) -> Other:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ends.set()
        self._thread.join()

    def p99(self) -> float:
        ordered = sorted(self.seconds)
        assert len(ordered) > 100, "hardly anything was answered"
        return ordered[len(ordered) * 99 // 100]

    def _read(self) -> None:
        assert self._siege.server is not None
        stranger = Stranger(self._siege.server.port)
        body = b'{"TableName":"Others","Key":{"pk":{"S":"a"}}}'
        case = corpus.case(
            "", "POST", "/", Body(corpus.JSON_1_0, body), "DynamoDB_20120810.GetItem"
        )
        message = signed_by(self._siege.owner.id, self._siege.owner.secret, case).message()
        while not self._ends.wait(READ_EVERY_SECONDS):
            began = time.perf_counter()
            if stranger.send(message).status != 200:
                break
            waited = time.perf_counter() - began
            while waited > 0:
                self.seconds.append(waited)
                waited -= READ_EVERY_SECONDS
        stranger.close()


@pytest.fixture(scope="module")
def others(siege: Siege) -> None:
    client = siege.people.client(siege.owner)
    client.create_table(
        TableName="Others",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    client.put_item(TableName="Others", Item={"pk": {"S": "a"}, "v": {"S": "x" * 500}})


def test_one_who_may_do_nothing_holds_up_nobody_else(siege: Siege, others: None) -> None:
    chosen = [*each_body(), *for_each_target(), *sample(SEED, SAMPLE_KNOWN, *KNOWN_KINDS)]
    siege.check(chosen, is_bounded, siege.send_signed)
    costs = [(siege.spent(case, siege.send_signed).own_seconds, case) for case in for_each_target()]
    costs.sort(key=itemgetter(0))
    worst = [case for _, case in costs[-REPEATED:]]
    p99s: list[float] = []
    for _ in range(TRIES):
        began, used = time.monotonic(), siege.own_seconds()
        with Other(siege) as other:
            while time.monotonic() < began + REPEATED_SECONDS:
                siege.send_signed(worst[0])
                worst = [*worst[1:], worst[0]]
        # A machine that is busy otherwise gives the server only a share of a processor.
        share = (siege.own_seconds() - used) / (time.monotonic() - began)
        p99s.append(other.p99() * min(1.0, share))
        if p99s[-1] < P99_SECONDS_MAX:
            return
    names = "\n".join(case.name for case in worst)
    pytest.fail(f"The p99 of others is {min(p99s) * 1000:.0f} ms during these:\n{names}", False)


def for_each_target() -> Iterator[Case]:
    """Yields bodies for the different decoders, with the largest decompressed size."""
    bodies = corpus.bodies()
    for target in (*corpus.TARGETS, "DynamoDB_20120810.PutItem", "DynamoDB_20120810.CreateTable"):
        for name in ("arrays", "deep arrays", "a long name", "cbor arrays"):
            body = bodies[f"gzip: {name}"]
            yield corpus.case(f"gzip: {name} for {target}", "POST", "/", body, target)
    for name, make in LARGEST.items():
        yield corpus.case(f"16 MB of {name}", "POST", "/", make(), corpus.BATCH)
