"""Responses to random requests equal DynamoDB Local's, except for intended differences.

A short hunt with fixed seeds is part of the suite; a long one takes PARTITA_FUZZ_SECONDS, from
PARTITA_FUZZ_SEED on or from a seed by chance, which it tells:

    PARTITA_FUZZ_SECONDS=600 pytest tests/compat/fuzz -m soak

Every finding names the seed of its round. A round is played again with that seed and one second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count

import pytest

from ..endpoints import Endpoint
from .generator import MAKERS, ROUND_REQUESTS, first_items, requests
from .hunt import Hunt
from .intended import RULES, TEXTS
from .twins import Twins

SHORT_SEEDS = range(1, 6)
SOAK_SECONDS = 300
ANSWERED_MIN = 0.5

OPERATIONS = frozenset(
    (
        "BatchExecuteStatement",
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "ExecuteStatement",
        "ExecuteTransaction",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    )
)


def test_a_seed_makes_the_same_round_each_time() -> None:
    assert list(requests(7)) == list(requests(7))
    assert first_items(7) == first_items(7)
    assert list(requests(7)) != list(requests(8))


def test_all_operations_on_items_are_made() -> None:
    assert {one.operation for seed in range(5) for one in requests(seed)} == OPERATIONS
    assert len(MAKERS) == len(OPERATIONS)


def test_everything_that_is_intended_has_a_reason_and_a_source() -> None:
    assert all(one.reason and one.source for one in RULES)
    assert all(one.reason and one.sources for one in TEXTS)


@pytest.mark.compat
def test_random_requests_are_answered_alike(partita: Endpoint, local: Endpoint) -> None:
    with Twins(local, partita) as twins:
        hunt = Hunt(twins)
        hunt.run(SHORT_SEEDS)
    assert not hunt.findings, hunt.report()
    assert hunt.compared == len(SHORT_SEEDS) * ROUND_REQUESTS
    assert hunt.answered / hunt.compared > ANSWERED_MIN


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], None]:
    """Writes a line to the terminal while a test runs."""

    def write(line: str) -> None:
        with capfd.disabled():
            request.config.get_terminal_writer().line(f"\n{line}", flush=True)

    return write


@pytest.mark.soak
def test_random_requests_are_answered_alike_for_minutes(
    partita: Endpoint, local: Endpoint, tell: Callable[[str], None]
) -> None:
    seed = int(os.environ.get("PARTITA_FUZZ_SEED") or time.time())
    seconds = float(os.environ.get("PARTITA_FUZZ_SECONDS") or SOAK_SECONDS)
    tell(f"Random requests for {seconds:g} s, from seed {seed} on.")
    with Twins(local, partita) as twins:
        hunt = Hunt(twins)
        hunt.run(count(seed), seconds)
    tell(hunt.summary())
    assert not hunt.findings, hunt.report()
