"""One shard and one function: retries, bisecting, reported failures, age, windows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita.client import Client
from partita.client.consumer.kinesis_source import TRIM_HORIZON
from partita_services.functions.destinations import Destinations
from partita_services.functions.mappings import batch_delivery as delivery_module
from partita_services.functions.mappings.batch_delivery import BatchDelivery, DeliveryDependencies
from partita_services.functions.mappings.event_source_mapping import EventSourceMapping
from partita_services.functions.mappings.event_sources import RecordPage, SourceRecord, SourceShard
from partita_services.functions.mappings.mapping_targets import CallFailed
from partita_services.functions.message_sinks import Sinks

NOW = 1_800_000_000.0
SHARD = SourceShard("arn", "shard", "shard", (), False)
END = "SHARD_END"


def record(number: int, *, age_seconds: float = 0, key: str = "k") -> SourceRecord:
    body = json.dumps({"n": number}).encode()
    return SourceRecord(f"{number:04d}", key, NOW - age_seconds, body)


class Shard:
    """A shard with given records, which notes the positions that are saved."""

    batch_info = "DDBStreamBatchInfo"

    def __init__(self, count: int, *, age_seconds: float = 0) -> None:
        self.records = [record(number, age_seconds=age_seconds) for number in range(1, count + 1)]
        self.is_closed = True
        self.saved: list[int | str] = []
        self.windows: list[Any] = []

    async def shards(self) -> list[SourceShard]:
        return [SHARD]

    async def latest(self, shard: SourceShard) -> str:
        raise NotImplementedError

    async def read(self, shard: SourceShard, position: str, limit: int) -> RecordPage:
        after = "" if position == TRIM_HORIZON else position
        page = RecordPage(position)
        page.records = [one for one in self.records if one.sequence_number > after][:limit]
        if page.records:
            page.position = page.records[-1].sequence_number
        page.is_last = self.is_closed
        return page

    async def save(self, position: str, window: Any) -> None:
        self.saved.append(int(position) if position.isdigit() else position)
        self.windows.append(window)


class Calls:
    """A function that notes its calls, and answers as the test says."""

    arn = "arn:aws:lambda:us-east-1:123456789012:function:t"
    version = "$LATEST"

    def __init__(self, answer: Callable[[list[int]], Any]) -> None:
        self.batches: list[list[int]] = []
        self.answer = answer

    async def call(self, event: bytes) -> bytes:
        batch = [record["n"] for record in json.loads(event)["Records"]]
        self.batches.append(batch)
        return json.dumps(self.answer(batch)).encode()

    async def close(self) -> None:
        pass


def seq(number: int) -> str:
    return f"{number:04d}"


def succeed(batch: list[int]) -> None:
    return None


def failing_on(*numbers: int) -> Callable[[list[int]], None]:
    def answer(batch: list[int]) -> None:
        if set(batch) & set(numbers):
            raise CallFailed("no")

    return answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(delivery_module, "POLL_SECONDS", 0.01)


def delivery_of(
    shard: Shard, function: Any, folder: Path = Path(), clock: Any = lambda: NOW, **settings: Any
) -> BatchDelivery:
    mapping = EventSourceMapping("uuid", "mapping", "arn", **settings)
    sinks = Sinks((), folder, Client("http://127.0.0.1:1"))
    dependencies = DeliveryDependencies(
        mapping, shard, function, Destinations(sinks, folder), clock, lambda result: None
    )
    return BatchDelivery(dependencies, SHARD, shard.save)


def consume(
    shard: Shard, function: Calls, folder: Path = Path(), *, position: int = 0, **settings: Any
) -> None:
    async def run() -> None:
        delivery = delivery_of(shard, function, folder, **settings)
        start = f"{position:04d}" if position else TRIM_HORIZON
        await asyncio.wait_for(delivery.consume(start), 10)

    asyncio.run(run())


def failures(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_batches_are_as_large_as_asked_for() -> None:
    shard, function = Shard(7), Calls(succeed)
    consume(shard, function, batch_size=3)
    assert function.batches == [[1, 2, 3], [4, 5, 6], [7]]
    assert shard.saved == [3, 6, 7, END]


def test_it_goes_on_where_it_was() -> None:
    shard, function = Shard(5), Calls(succeed)
    consume(shard, function, position=3)
    assert function.batches == [[4, 5]]


def test_a_failed_batch_is_tried_again_before_any_other() -> None:
    answers = iter([CallFailed("no"), CallFailed("no"), None, None])

    def answer(batch: list[int]) -> None:
        if error := next(answers):
            raise error

    shard, function = Shard(4), Calls(answer)
    consume(shard, function, batch_size=2)
    assert function.batches == [[1, 2], [1, 2], [1, 2], [3, 4]]
    assert shard.saved == [2, 4, END]


def test_after_the_last_retry_a_batch_is_given_up(tmp_path: Path) -> None:
    shard, function = Shard(4), Calls(failing_on(2))
    more: dict[str, Any] = {"batch_size": 2, "maximum_retries": 2, "on_failure": "failed"}
    consume(shard, function, tmp_path, **more)
    assert function.batches == [[1, 2], [1, 2], [1, 2], [3, 4]]
    assert shard.saved == [2, 4, END]
    (failure,) = failures(tmp_path / "failed")
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert failure["requestContext"]["approximateInvokeCount"] == 3
    assert failure["reason"] == "no"
    assert failure["requestContext"]["functionArn"] == function.arn
    assert failure["timestamp"] == "2027-01-15T08:00:00.000Z"
    info = failure["DDBStreamBatchInfo"]
    assert info["approximateArrivalOfFirstRecord"] == "2027-01-15T08:00:00Z"
    assert (info["startSequenceNumber"], info["endSequenceNumber"], info["batchSize"]) == (
        seq(1),
        seq(2),
        2,
    )
    assert json.loads(failure["payload"]) == {"Records": [{"n": 1}, {"n": 2}]}


def test_bisecting_finds_the_record_that_fails(tmp_path: Path) -> None:
    shard, function = Shard(8), Calls(failing_on(6))
    more: dict[str, Any] = {"bisects": True, "maximum_retries": 1, "on_failure": "failed"}
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
    assert shard.saved == [4, 5, 6, 8, END]


def test_reported_failures_are_where_it_goes_on() -> None:
    def answer(batch: list[int]) -> Any:
        if len(batch) == 5:
            failed = [{"itemIdentifier": seq(number)} for number in (4, 3)]
            return {"batchItemFailures": failed}
        return {"batchItemFailures": []}

    shard, function = Shard(5), Calls(answer)
    consume(shard, function, reports_failures=True)
    assert function.batches == [[1, 2, 3, 4, 5], [3, 4, 5]]
    assert shard.saved == [2, 5, END]


def test_a_batch_with_reported_failures_is_bisected_at_the_first_of_them() -> None:
    def answer(batch: list[int]) -> Any:
        failed = [seq(3)] if len(batch) == 8 else []
        return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}

    shard, function = Shard(8), Calls(answer)
    consume(shard, function, reports_failures=True, bisects=True)
    assert function.batches == [[1, 2, 3, 4, 5, 6, 7, 8], [3, 4, 5, 6, 7, 8]]
    assert shard.saved == [2, 8, END]


def test_reports_are_only_read_when_asked_for() -> None:
    report = {"batchItemFailures": [{"itemIdentifier": seq(1)}]}
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
        reports_failures=True, maximum_retries=1, on_failure="failed",
    )  # fmt: skip
    assert function.batches == [[1, 2], [1, 2]]
    assert len(failures(tmp_path / "failed")) == 1


@pytest.mark.parametrize("result", [None, {}, [], "", {"batchItemFailures": None}, {"other": 1}])
def test_these_reports_are_a_success(result: Any) -> None:
    shard, function = Shard(2), Calls(lambda batch: result)
    consume(shard, function, reports_failures=True)
    assert function.batches == [[1, 2]]


def test_records_that_are_too_old_are_given_up(tmp_path: Path) -> None:
    shard, function = Shard(4, age_seconds=100), Calls(succeed)
    shard.records[2:] = Shard(4).records[2:]
    consume(shard, function, tmp_path, maximum_age_seconds=60, on_failure="failed")
    assert function.batches == [[3, 4]]
    (failure,) = failures(tmp_path / "failed")
    assert failure["requestContext"]["condition"] == "RecordAgeExceeded"
    assert failure["DDBStreamBatchInfo"]["batchSize"] == 2


def test_a_clock_that_was_put_back_loses_no_record(tmp_path: Path) -> None:
    shard, function = Shard(3), Calls(succeed)
    shard.records[1] = Shard(3, age_seconds=100).records[1]
    consume(shard, function, tmp_path, maximum_age_seconds=60, on_failure="failed")
    assert function.batches == [[1, 2, 3]]
    assert failures(tmp_path / "failed") == []


def test_a_destination_that_fails_is_tried_again(tmp_path: Path) -> None:
    shard, function = Shard(1), Calls(failing_on(1))
    destination = tmp_path / "later" / "failed"

    async def run() -> None:
        delivery = delivery_of(
            shard, function, tmp_path, maximum_retries=0, on_failure=str(destination)
        )
        task = asyncio.create_task(delivery.consume(TRIM_HORIZON))
        await asyncio.sleep(0.1)
        assert shard.saved == []
        destination.parent.mkdir()
        await asyncio.wait_for(task, 10)

    asyncio.run(run())
    assert shard.saved == [1, END]
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
        delivery = delivery_of(shard, function, batch_size=4, window_seconds=window_seconds)
        task = asyncio.create_task(delivery.consume(TRIM_HORIZON))
        await asyncio.sleep(0.05)
        assert function.batches == []
        shard.records.append(record(3))
        assert await batches(1) == [[1, 2, 3]]
        shard.records += [record(number) for number in (4, 5, 6, 7)]
        began = asyncio.get_running_loop().time()
        await batches(2)
        waited = asyncio.get_running_loop().time() - began
        assert waited < window_seconds, "a full batch need not wait"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_a_stop_notes_nothing() -> None:
    shard, function = Shard(2), Calls(failing_on(1))

    async def run() -> None:
        task = asyncio.create_task(delivery_of(shard, function).consume(TRIM_HORIZON))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert shard.saved == []


def test_keys_in_parallel_keep_their_order_and_nothing_unfinished_is_noted() -> None:
    shard = Shard(0)
    shard.records = [record(number, key=str(number % 7)) for number in range(1, 101)]
    finished: list[int] = []
    under_way: list[int] = []
    most = 0

    class Slow(Calls):
        async def call(self, event: bytes) -> bytes:
            nonlocal most
            numbers = [one["n"] for one in json.loads(event)["Records"]]
            under_way.extend(numbers)
            most = max(most, len(under_way))
            await asyncio.sleep(0.01 * (numbers[0] % 3))
            for number in numbers:
                under_way.remove(number)
            finished.extend(numbers)
            noted = [one for one in shard.saved if isinstance(one, int)]
            assert set(range(1, max(noted, default=0) + 1)) <= set(finished)
            return b"null"

    consume(shard, Slow(succeed), parallelization_factor=4, batch_size=1)
    assert most > 1, "nothing ran at the same time"
    assert sorted(finished) == list(range(1, 101))
    for key in range(7):
        of_key = [number for number in finished if number % 7 == key]
        assert of_key == sorted(of_key)
    assert shard.saved[-2:] == [100, END]


def test_records_that_no_filter_matches_are_passed_over() -> None:
    shard, function = Shard(5), Calls(succeed)
    read = shard.read

    async def odd_only(place: SourceShard, position: str, limit: int) -> RecordPage:
        page = await read(place, position, limit)
        page.records = [one for one in page.records if int(one.sequence_number) % 2]
        return page

    shard.read = odd_only  # type: ignore[assignment, method-assign]
    consume(shard, function, batch_size=2)
    assert function.batches == [[1, 3], [5]]
    assert shard.saved == [3, 5, END]


class Windows:
    """A function that counts in tumbling windows, and notes its events."""

    arn = "arn"

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def call(self, event: bytes) -> bytes:
        told = json.loads(event)
        self.events.append(told)
        count = told["state"].get("count", 0) + len(told["Records"])
        return json.dumps({"state": {"count": count}}).encode()

    async def close(self) -> None:
        pass


def test_tumbling_windows_hand_the_state_on_and_end_with_a_last_call() -> None:
    shard, function = Shard(5), Windows()
    shard.records[:3] = [record(number, age_seconds=60) for number in (1, 2, 3)]

    async def run() -> None:
        delivery = delivery_of(shard, function, tumbling_seconds=60, batch_size=2)
        await asyncio.wait_for(delivery.consume(TRIM_HORIZON), 10)

    asyncio.run(run())
    told = [
        (len(one["Records"]), one["state"], one["isFinalInvokeForWindow"])
        for one in function.events
    ]
    assert told == [
        (2, {}, False),
        (1, {"count": 2}, False),
        (0, {"count": 3}, True),
        (1, {}, False),
        (1, {"count": 1}, False),
        (0, {"count": 2}, True),
    ]
    first = function.events[0]
    assert first["window"] == {"start": "2027-01-15T07:59:00Z", "end": "2027-01-15T08:00:00Z"}
    assert (first["shardId"], first["eventSourceARN"]) == ("shard", "arn")
    assert first["isWindowTerminatedEarly"] is False
    # The state is noted with the position: neither is there without the other.
    assert shard.windows[0]["state"] == {"count": 2}
    assert shard.windows[-1] is None


def test_an_open_window_goes_on_after_a_restart() -> None:
    shard, function = Shard(1), Windows()
    window = {"start": int(NOW), "end": int(NOW) + 60, "state": {"count": 41}}

    async def run() -> None:
        delivery = delivery_of(shard, function, tumbling_seconds=60)
        await asyncio.wait_for(delivery.consume(TRIM_HORIZON, window), 10)

    asyncio.run(run())
    assert [one["state"] for one in function.events] == [{"count": 41}, {"count": 42}]
