"""One shard and one function: retries, bisecting, reported failures, age, windows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita.database.operations.streams.records import sequence_number
from partita.settings import Trigger
from partita.streams.triggers import consumer as consumer_module
from partita.streams.triggers.consumer import Consumer, ShardReader
from partita.streams.triggers.functions import CallFailed
from partita.streams.triggers.records import Page, Record

NOW = 1_800_000_000.0


class Shard:
    """Records that are there, and positions that are noted."""

    def __init__(self, count: int, *, age_seconds: float = 0) -> None:
        self.records = [
            Record(number, NOW - age_seconds, json.dumps({"n": number}).encode())
            for number in range(1, count + 1)
        ]
        self.is_closed = True
        self.saved: list[int] = []
        self.reads = 0

    def read(self, position: int, limit: int) -> Page:
        self.reads += 1
        page = Page(position)
        page.records = [one for one in self.records if one.sequence >= position][:limit]
        if page.records:
            page.position = page.records[-1].sequence + 1
        page.is_last = self.is_closed and page.position > len(self.records)
        return page

    async def save(self, position: int) -> None:
        self.saved.append(position)

    def reader(self) -> ShardReader:
        return ShardReader("shard", "arn", self.read, self.save)


class Calls:
    """A function that writes down its calls, and answers as it is told."""

    arn = "arn:aws:lambda:us-east-1:123456789012:function:t"

    def __init__(self, answer: Callable[[list[int]], Any]) -> None:
        self.batches: list[list[int]] = []
        self.answer = answer
        self.is_closed = False

    async def call(self, event: bytes) -> Any:
        batch = [record["n"] for record in json.loads(event)["Records"]]
        self.batches.append(batch)
        return self.answer(batch)

    async def close(self) -> None:
        self.is_closed = True


def succeed(batch: list[int]) -> None:
    return None


def failing_on(*numbers: int) -> Callable[[list[int]], None]:
    def answer(batch: list[int]) -> None:
        if set(batch) & set(numbers):
            raise CallFailed("no")

    return answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(consumer_module, "POLL_SECONDS", 0.01)


def consume(
    shard: Shard, function: Calls, folder: Path = Path(), *, position: int = 1, **settings: Any
) -> None:
    trigger = Trigger(name="trigger", table="table", function="module:function", **settings)
    consumer = Consumer(trigger, shard.reader(), function, folder, lambda: NOW)
    asyncio.run(asyncio.wait_for(consumer.consume(position), 10))
    assert function.is_closed


def failures(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_batches_are_as_large_as_asked_for() -> None:
    shard, function = Shard(7), Calls(succeed)
    consume(shard, function, batch_size=3)
    assert function.batches == [[1, 2, 3], [4, 5, 6], [7]]
    assert shard.saved == [4, 7, 8]


def test_it_goes_on_where_it_was() -> None:
    shard, function = Shard(5), Calls(succeed)
    consume(shard, function, position=4)
    assert function.batches == [[4, 5]]


def test_a_failed_batch_is_tried_again_before_any_other() -> None:
    answers = iter([CallFailed("no"), CallFailed("no"), None, None])

    def answer(batch: list[int]) -> None:
        if error := next(answers):
            raise error

    shard, function = Shard(4), Calls(answer)
    consume(shard, function, batch_size=2)
    assert function.batches == [[1, 2], [1, 2], [1, 2], [3, 4]]
    assert shard.saved == [3, 5]


def test_after_the_last_retry_a_batch_is_given_up(tmp_path: Path) -> None:
    shard, function = Shard(4), Calls(failing_on(2))
    more: dict[str, Any] = {"batch_size": 2, "maximum_retries": 2, "on_failure": "failed"}
    consume(shard, function, tmp_path, **more)
    assert function.batches == [[1, 2], [1, 2], [1, 2], [3, 4]]
    assert shard.saved == [3, 5]
    (failure,) = failures(tmp_path / "failed")
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert failure["requestContext"]["approximateInvokeCount"] == 3
    assert failure["responseContext"]["functionError"] == "no"
    assert failure["requestContext"]["functionArn"] == function.arn
    assert failure["timestamp"] == "2027-01-15T08:00:00.000Z"
    info = failure["DDBStreamBatchInfo"]
    assert info["approximateArrivalOfFirstRecord"] == "2027-01-15T08:00:00Z"
    assert (info["startSequenceNumber"], info["endSequenceNumber"], info["batchSize"]) == (
        sequence_number(1),
        sequence_number(2),
        2,
    )
    assert json.loads(failure["payload"]) == {"Records": [{"n": 1}, {"n": 2}]}


def test_bisecting_finds_the_record_that_fails(tmp_path: Path) -> None:
    shard, function = Shard(8), Calls(failing_on(6))
    more: dict[str, Any] = {"bisect_on_error": True, "maximum_retries": 1, "on_failure": "failed"}
    consume(shard, function, tmp_path, **more)
    assert function.batches == [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [1, 2, 3, 4],
        [5, 6, 7, 8],
        [5, 6],
        [5],
        [6],
        [6],
        [7, 8],
    ]
    (failure,) = failures(tmp_path / "failed")
    assert json.loads(failure["payload"]) == {"Records": [{"n": 6}]}
    assert shard.saved == sorted(shard.saved)
    assert shard.saved[-1] == 9


def test_reported_failures_are_where_it_goes_on() -> None:
    def answer(batch: list[int]) -> Any:
        if len(batch) == 5:
            failed = [{"itemIdentifier": sequence_number(number)} for number in (4, 3)]
            return {"batchItemFailures": failed}
        return {"batchItemFailures": []}

    shard, function = Shard(5), Calls(answer)
    consume(shard, function, report_batch_item_failures=True)
    assert function.batches == [[1, 2, 3, 4, 5], [3, 4, 5]]
    assert shard.saved == [3, 6]


def test_a_batch_with_reported_failures_is_bisected_at_the_first_of_them() -> None:
    def answer(batch: list[int]) -> Any:
        failed = [sequence_number(3)] if len(batch) == 8 else []
        return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}

    shard, function = Shard(8), Calls(answer)
    consume(shard, function, report_batch_item_failures=True, bisect_on_error=True)
    assert function.batches == [[1, 2, 3, 4, 5, 6, 7, 8], [3, 4, 5, 6, 7, 8]]
    assert shard.saved == [3, 9]


def test_reports_are_only_read_when_asked_for() -> None:
    report = {"batchItemFailures": [{"itemIdentifier": sequence_number(1)}]}
    shard, function = Shard(2), Calls(lambda batch: report)
    consume(shard, function)
    assert function.batches == [[1, 2]]


@pytest.mark.parametrize(
    "report",
    [[{"itemIdentifier": ""}], [{"itemIdentifier": "5"}], [{}], ["x"], [{"itemIdentifier": None}]],
)
def test_a_report_that_makes_no_sense_fails_the_batch(report: Any, tmp_path: Path) -> None:
    shard, function = Shard(2), Calls(lambda batch: {"batchItemFailures": report})
    consume(
        shard, function, tmp_path,
        report_batch_item_failures=True, maximum_retries=1, on_failure="failed",
    )  # fmt: skip
    assert function.batches == [[1, 2], [1, 2]]
    assert len(failures(tmp_path / "failed")) == 1


@pytest.mark.parametrize("result", [None, {}, [], "", {"batchItemFailures": None}, {"other": 1}])
def test_these_reports_are_a_success(result: Any) -> None:
    shard, function = Shard(2), Calls(lambda batch: result)
    consume(shard, function, report_batch_item_failures=True)
    assert function.batches == [[1, 2]]


def test_records_that_are_too_old_are_given_up(tmp_path: Path) -> None:
    shard, function = Shard(4, age_seconds=100), Calls(succeed)
    shard.records[2:] = Shard(4).records[2:]
    consume(shard, function, tmp_path, maximum_record_age_seconds=60, on_failure="failed")
    assert function.batches == [[3, 4]]
    (failure,) = failures(tmp_path / "failed")
    assert failure["requestContext"]["condition"] == "RecordAgeExceeded"
    assert failure["DDBStreamBatchInfo"]["batchSize"] == 2


def test_a_clock_that_was_put_back_loses_no_record(tmp_path: Path) -> None:
    shard, function = Shard(3), Calls(succeed)
    shard.records[1] = Shard(3, age_seconds=100).records[1]
    consume(shard, function, tmp_path, maximum_record_age_seconds=60, on_failure="failed")
    assert function.batches == [[1, 2, 3]]
    assert failures(tmp_path / "failed") == []


def test_a_destination_that_fails_is_tried_again(tmp_path: Path) -> None:
    shard, function = Shard(1), Calls(failing_on(1))
    destination = tmp_path / "later" / "failed"

    async def run() -> None:
        trigger = Trigger(
            name="t", table="t", function="m:f", maximum_retries=0, on_failure=str(destination)
        )
        task = asyncio.create_task(
            Consumer(trigger, shard.reader(), function, tmp_path, lambda: NOW).consume(1)
        )
        await asyncio.sleep(0.1)
        assert shard.saved == []
        destination.parent.mkdir()
        await asyncio.wait_for(task, 10)

    asyncio.run(run())
    assert shard.saved == [2]
    assert len(failures(destination)) == 1


def test_the_window_waits_for_more() -> None:
    shard, function = Shard(2), Calls(succeed)
    shard.is_closed = False
    window_seconds = 1.0

    async def batches(count: int) -> list[list[int]]:
        async with asyncio.timeout(20):
            while len(function.batches) < count:
                await asyncio.sleep(0.01)
        return function.batches

    async def run() -> None:
        trigger = Trigger(
            name="t", table="t", function="m:f", batch_size=4,
            batching_window_seconds=window_seconds,
        )  # fmt: skip
        consumer = Consumer(trigger, shard.reader(), function, Path(), lambda: NOW)
        task = asyncio.create_task(consumer.consume(1))
        await asyncio.sleep(0.05)
        assert function.batches == []
        shard.records.append(Record(3, NOW, b'{"n": 3}'))
        assert await batches(1) == [[1, 2, 3]]
        shard.records += [Record(number, NOW, b'{"n": 0}') for number in (4, 5, 6, 7)]
        began = asyncio.get_running_loop().time()
        await batches(2)
        waited = asyncio.get_running_loop().time() - began
        assert waited < window_seconds, "a full batch need not wait"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_a_stop_ends_the_function_and_notes_nothing() -> None:
    shard, function = Shard(2), Calls(failing_on(1))

    async def run() -> None:
        trigger = Trigger(name="t", table="t", function="m:f")
        consumer = Consumer(trigger, shard.reader(), function, Path(), lambda: NOW)
        task = asyncio.create_task(consumer.consume(1))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert function.is_closed
    assert shard.saved == []
