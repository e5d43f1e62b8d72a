"""A function has few processes while they keep up, and more when calls wait for them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from partita_services.functions.runtime import function_pool
from partita_services.functions.runtime.function_pool import FunctionPool
from partita_services.functions.runtime.function_process import FunctionSpec

MODULE = """
import os, time
from pathlib import Path

def say_who(event, context):
    return os.getpid()

def meet(event, context):
    # Returns only when as many of us as were called run at the same time.
    Path(f"here{event['number']}").touch()
    while len(list(Path(".").glob("here*"))) < event["of"]:
        time.sleep(0.01)
    return os.getpid()
"""


def called(folder: Path, name: str, events: list[Any]) -> list[Any]:
    """The answers to calls that all come at once."""
    (folder / "crew.py").write_text(MODULE)

    async def story() -> list[Any]:
        function = FunctionSpec(name, f"crew:{name}", folder, 60, "arn", dict(os.environ))
        pool = FunctionPool(function, asyncio.Lock())
        try:
            calls = (pool.call(json.dumps(event).encode()) for event in events)
            return [json.loads(one.result()) for one in await asyncio.gather(*calls)]
        finally:
            await pool.close()

    return asyncio.run(story())


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_pool, "CORES", 1)


@pytest.mark.usefixtures("one_core")
def test_processes_that_keep_up_are_not_joined_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_pool, "BUSY_SECONDS", 60)
    assert len(set(called(tmp_path, "say_who", [{}] * 20))) == 1


@pytest.mark.usefixtures("one_core")
def test_calls_that_wait_for_each_other_all_run_at_once(tmp_path: Path) -> None:
    events = [{"number": number, "of": 4} for number in range(4)]
    assert len(set(called(tmp_path, "meet", events))) == 4
