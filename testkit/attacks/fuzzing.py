"""Requests with random damage, reproducible by seed, and a server that must answer them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import pytest

from partita.client.aws_services import AwsService
from partita.client.request_signing import Credentials, signed_headers
from partita.server.security.identities.user_directory import AccessKey
from testkit.attacks.corpus import Case
from testkit.attacks.strangers import Answer, Stranger
from testkit.servers.users import REGION

SEED = 28
ROUNDS, ROUNDS_SOAKED = 5_000, 2_000_000
EXTREMES = (0, 1, 0x17, 0x18, 0x1F, 0x7F, 0x80, 0x9F, 0xBF, 0xC1, 0xD8, 0xF7, 0xFB, 0xFF)

both_lengths = pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(ROUNDS_SOAKED, marks=pytest.mark.soak)]
)


ROUNDS_PER_SEED = 125


def seeds(rounds: int) -> range:
    """Returns fewer seeds than usual, for tests with many cases per seed."""
    return range(rounds // ROUNDS_PER_SEED)


class Signing(NamedTuple):
    key: AccessKey
    service: str

    def signed(self, case: Case) -> Case:
        given = {"Host": "localhost"}
        given |= {name: value for name, value in case.headers if name == "X-Amz-Target"}
        credentials = Credentials(self.key.id, self.key.secret)
        service = AwsService("", "", "", self.service)
        more = signed_headers(service, REGION, credentials, given, case.body, time.time())
        return case._replace(headers=(*case.headers, *more.items()))


def spoilt(random: Random, content: bytes, words: Sequence[bytes]) -> bytes:
    """Returns the content with some bytes changed, removed, repeated, or replaced by words."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        SPOILERS[random.randrange(len(SPOILERS))](random, changed, words)
    return bytes(changed)


def _flip(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _replace(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    if content:
        content[random.randrange(len(content))] = random.choice(EXTREMES)


def _remove(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    start = random.randrange(len(content) + 1)
    del content[start : start + random.choice((1, 2, 8, 100))]


def _repeat(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    start = random.randrange(len(content) + 1)
    part = content[start : start + random.choice((1, 4, 40))]
    content[start:start] = part * random.choice((1, 2, 50))


def _insert(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    start = random.randrange(len(content) + 1)
    content[start:start] = random.choice(words) * random.choice((1, 1, 3, 200))


def _overwrite(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    start, word = random.randrange(len(content) + 1), random.choice(words)
    content[start : start + len(word)] = word


def _cut(random: Random, content: bytearray, words: Sequence[bytes]) -> None:
    del content[random.randrange(len(content) + 1) :]


SPOILERS: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    *(_flip, _replace, _remove, _repeat, _insert, _overwrite, _cut),
)


def fuzz(
    port: int,
    rounds: int,
    make: Callable[[Random], Case],
    allowed: Callable[[Answer], bool],
) -> None:
    """Sends what `make` returns, and fails at the first response that is missing or not allowed."""
    stranger = Stranger(port)
    for number in range(rounds):
        random = Random(f"{SEED}/{number}")
        case = make(random)
        try:
            answer = stranger.send(case.message())
        except (OSError, ValueError, IndexError) as error:
            stranger.close()
            pytest.fail(f"Round {number} has no answer: {error!r}, {case!r:.2000}", False)
        if not allowed(answer):
            stranger.close()
            pytest.fail(f"Round {number}: {answer!r:.500}, {case!r:.2000}", False)
    health = stranger.send(Case("", "GET", "/health", ()).message())
    stranger.close()
    assert health.status == 200
