"""The page hit counter as processes that a test can kill one by one, and visits to send to it."""

from __future__ import annotations

import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from page_hit_counter.storing.window_rows import unpack
from testkit.servers.processes import ENVIRONMENT, Server

WAIT_SECONDS_MAX = 300
STOP_SECONDS_MAX = 60
PARTS = ("processor", "counter", "consumer", "api")
ONE_PROCESS = (",".join(PARTS),)
Row = tuple[str, int, int, str, str]
"""Brand, asset, section, paid type, resource type."""
Windows = dict[tuple[str, str, int], dict[Row, int]]
"""The rows of each window, by brand, period and start."""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


class Pipeline:
    """A database and the parts of the service, each a process that keeps its port over restarts.

    Parts that are named together, as in "processor,api", share a process.
    """

    def __init__(self, folder: Path, settings: str = "", parts: Iterable[str] = PARTS) -> None:
        self.folder = folder
        self.config = folder / "pagehits.toml"
        self.config.write_text(settings)
        self._ports: dict[str, int] = {}
        self.running: dict[str, Server] = {}
        self.start("database")
        for part in parts:
            self.start(part)

    @property
    def endpoint(self) -> str:
        return self.running["database"].url

    def url(self, part: str) -> str:
        return next(s.url for names, s in self.running.items() if part in names.split(","))

    def start(self, name: str) -> None:
        port = self._ports.setdefault(name, free_port())
        if name == "database":
            arguments: list[str | Path] = ["serve", "--data", self.folder / "data"]
        else:
            arguments = ["pagehits", "serve", "--parts", name, "--config", self.config]
            arguments += ["--endpoint", f"http://127.0.0.1:{self._ports['database']}"]
        self.running[name] = Server(
            *arguments, "--port", str(port), stderr=subprocess.STDOUT, env=ENVIRONMENT
        )

    def kill(self, name: str) -> None:
        """Kills a part with SIGKILL and starts it again."""
        self.running[name].kill()
        self.start(name)

    def stop(self) -> None:
        """Stops everything, the database last, because parts without a database wait for it."""
        for server in reversed(list(self.running.values())):
            server.process.send_signal(signal.SIGTERM)
            try:
                output, _ = server.process.communicate(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                server.process.kill()
                output, _ = server.process.communicate()
            sys.stdout.write(output[-3000:])

    def client(self, service: str = "dynamodb") -> Any:
        return self.running["database"].client(service)

    def post(self, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        answer = self.request("processor", "POST", "/events", json.dumps(body), headers)
        return answer[0], json.loads(answer[2])

    def get(self, target: str, part: str = "api") -> tuple[int, dict[str, str], Any]:
        status, headers, content = self.request(part, "GET", target)
        return status, headers, json.loads(content)

    def request(
        self,
        part: str,
        method: str,
        target: str,
        body: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        port = next(port for names, port in self._ports.items() if part in names.split(","))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def post_until_taken(self, body: Any, headers: dict[str, str] | None = None) -> Any:
        """Repeats a request until it succeeds, like a sender that must not lose anything."""

        def taken() -> Any:
            try:
                status, answer = self.post(body, headers)
            except (OSError, http.client.HTTPException):
                return None
            assert status in (200, 503), answer
            return answer if status == 200 else None

        return wait_for(taken)

    # Results.

    def windows(self) -> Windows:
        """Returns every closed window as it is stored; its item and its rows must agree."""
        items, stored_rows = self._items_and_rows()
        rows: dict[str, list[dict[str, Any]]] = {}
        for item in stored_rows:
            rows.setdefault(item["hashKey"]["S"], []).append(item)
        found: Windows = {}
        for item in items:
            brand, _, code = item["name"]["S"].rpartition("#")
            start = int(item["start"]["N"])
            kept: list[tuple[Any, ...]] = []
            if "rows" in item:
                kept = [astuple(row) for row in unpack(bytes(item["rows"]["B"])).rows()]
            if "unstored" not in item:
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start))
                shown = rows.get(f"{brand}#{code}#{stamp}") or rows.get(
                    f"{brand}#{code}#{stamp[:16]}", []
                )
                stored = [_row(row) for row in shown]
                # The rows expire before the item.
                assert not stored or "rows" not in item or sorted(kept) == sorted(stored)
                kept = [*stored]
            found[brand, code, start] = {
                (brand, asset, section, paid, kind): hits
                for asset, section, paid, kind, hits in kept
            }
        return found

    def _items_and_rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Reads both tables as of one moment; repeats if a window changed between the reads."""
        items = scan(self.client(), "pagehits-windows")
        while True:
            rows = scan(self.client(), "pagehits")
            before, items = items, scan(self.client(), "pagehits-windows")
            if before == items:
                return items, rows

    def wait_for_windows(self, expected: Windows) -> None:
        """Waits until all windows are closed and stored."""

        def are_stored() -> bool:
            items = scan(self.client(), "pagehits-windows")
            return len(items) >= len(expected) and all("unstored" not in item for item in items)

        wait_for(are_stored)


def _row(item: dict[str, Any]) -> tuple[int, int, str, str, int]:
    hits, asset = item["rangeKey"]["S"].split("#")[:2]
    return (
        int(asset),
        int(item["sectionId"]["N"]),
        item["paidType"]["S"],
        item["resourceType"]["S"],
        int(hits),
    )


def wait_for(condition: Callable[[], Any], seconds: float = WAIT_SECONDS_MAX) -> Any:
    ends = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.1)


def scan(client: Any, table: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


# Visits.

TYPES = ("article", "recipe", "advertorial")
PAID = ("free", "paid", "metered")


def put_assets(client: Any, count: int, brands: tuple[str, ...] = ("abc", "def")) -> None:
    for first in range(0, count, 25):
        requests = [
            {"PutRequest": {"Item": asset_item(number, brands)}}
            for number in range(first, min(first + 25, count))
        ]
        client.batch_write_item(RequestItems={"pagehits-assets": requests})


def asset_item(number: int, brands: tuple[str, ...]) -> dict[str, Any]:
    return {
        "assetId": {"N": str(asset_id(number))},
        "brand": {"S": brands[number % len(brands)]},
        "resourceType": {"S": TYPES[number % len(TYPES)]},
    }


def asset_id(number: int) -> int:
    return 100_000_000 + number


def make_visits(
    chance: random.Random, count: int, assets: int, times: Callable[[int], float]
) -> Iterator[dict[str, Any]]:
    """Yields visits, most of them to a few assets, as on real sites."""
    for number in range(count):
        yield {
            "assetId": asset_id(min(int(chance.paretovariate(0.6)) - 1, assets - 1)),
            "sectionId": chance.randint(1, 3),
            "paidType": chance.choice(PAID),
            "visitor": f"v{chance.randrange(10_000)}",
            "time": times(number),
        }


def recount(
    visits: Iterable[dict[str, Any]],
    lengths: dict[str, int],
    counts_in: Callable[[dict[str, Any], int], bool] = lambda visit, end: True,
    brands: tuple[str, ...] = ("abc", "def"),
) -> Windows:
    """Counts every window in the simplest way, independently of the service."""
    windows: dict[tuple[str, str, int], Counter[Row]] = {}
    for visit in visits:
        number = visit["assetId"] - asset_id(0)
        # A visit states the type of its asset at that time; another may state another type.
        brand = visit.get("brand") or brands[number % len(brands)]
        kind = visit.get("resourceType") or TYPES[number % len(TYPES)]
        row = (brand, visit["assetId"], visit["sectionId"], visit["paidType"], kind)
        for code, seconds in lengths.items():
            start = int(visit["time"]) // seconds * seconds
            if counts_in(visit, start + seconds):
                windows.setdefault((brand, code, start), Counter())[row] += 1
    return {key: dict(counts) for key, counts in windows.items()}


def down_to(windows: Windows, assets: int) -> Windows:
    """Removes the rows of assets with fewer hits than the last asset that is kept."""
    kept: Windows = {}
    for key, rows in windows.items():
        totals: Counter[int] = Counter()
        for row, hits in rows.items():
            totals[row[1]] += hits
        lowest = sorted(totals.values(), reverse=True)[:assets][-1]
        kept[key] = {row: hits for row, hits in rows.items() if totals[row[1]] >= lowest}
    return kept


def stream_visits(client: Any, stream: str = "pagehits") -> Iterator[tuple[dict[str, Any], float]]:
    """Yields each record of the stream once, with its arrival time."""
    seen = set()
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while iterator:
            answer = client.get_records(ShardIterator=iterator)
            for record in answer["Records"]:
                packed = json.loads(record["Data"])
                if packed["id"] not in seen:
                    seen.add(packed["id"])
                    arrived = record["ApproximateArrivalTimestamp"].timestamp()
                    yield from ((visit, arrived) for visit in packed["visits"])
            if not answer["Records"] and not answer["MillisBehindLatest"]:
                break
            iterator = answer.get("NextShardIterator")


@contextmanager
def running(folder: Path, settings: str = "", **more: Any) -> Iterator[Pipeline]:
    pipeline = Pipeline(folder, settings, **more)
    try:
        yield pipeline
    finally:
        pipeline.stop()
