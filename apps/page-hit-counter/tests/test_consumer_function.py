"""The consumer as a function of the database's server: every row is stored, whatever is killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from testkit.data.page_hit_pipeline import (
    ONE_PROCESS,
    Pipeline,
    make_visits,
    put_assets,
    recount,
    running,
    wait_for,
)
from testkit.packaging.function_packages import children, companion

from .conftest import ASSETS, SHORT_PERIODS

VISITS = 400


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("called")
    slow = SHORT_PERIODS.replace("write_units = 1000", "write_units = 200")
    settings = f'consumer = "function"\nkept_assets = 1000\n{slow}'
    with running(folder, settings, parts=ONE_PROCESS) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        yield pipeline


def test_closed_windows_are_stored_by_a_function_that_is_killed(called: Pipeline) -> None:
    functions = called.client("lambda")
    described = functions.get_function(FunctionName="page-hit-consumer")["Configuration"]
    variables = described["Environment"]["Variables"]
    assert variables == {"PAGEHITS_CONFIG": str(called.config)}
    visits = list(make_visits(random.Random(7), VISITS, ASSETS, lambda _: time.time()))
    assert called.post(visits)[0] == 200
    for _ in range(3):
        time.sleep(0.4)
        with suppress(LookupError, ProcessLookupError):
            for child in children(companion(called.running["database"])):
                os.kill(child, signal.SIGKILL)
    expected = recount(visits, {"F": 1, "H": 2, "D": 4})
    called.wait_for_windows(expected)
    assert called.windows() == expected


def test_the_function_adds_up_its_figures(called: Pipeline) -> None:
    rows = sum(map(len, called.windows().values()))

    def totals() -> dict[str, float]:
        found: dict[str, float] = called.get("/figures")[2]["totals"]
        return found

    # A function adds its figures after it has stored the rows.
    wait_for(lambda: totals()["writeUnits"] >= rows)
    assert totals()["consumerRuns"] > 0 and totals()["consumerMs"] > 0
