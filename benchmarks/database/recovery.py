"""Measures the cost of backups, recovery, restores, exports and imports on this machine.

    python -m benchmarks.database.recovery [--items 200000] [--value-bytes 200] [--restore-mb 1024]

Each figure is printed when it is known, with the minutes since the beginning, and kept in
`results/recovery.json` even if a later part fails. One server with a data folder, durable. Rates
are items a second; the p99 is that of GetItem from one other connection meanwhile; MB are the most
memory that the server and its processes had of their own. The whole backup has six tables of so
many items; its rate counts those of one. While a base is taken, items are overwritten, and the
growth is that of the tree's file. Afterwards so many MB are restored side by side
(`benchmarks/database/restores.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.database.restores import side_by_side
from benchmarks.drivers.plain_requests import Connection, schema, spread, until
from benchmarks.reporting.saved_results import RESULTS, keep
from testkit.servers import processes

ROUNDS = 8
MEMORY_EVERY = 50
"""The number of GetItems between two readings of the memory."""
WRITES_MAX = 80_000
COMPARED = ("restore", "import", "bulk")
"""These are compared with BatchWriteItem."""
ON = {"PointInTimeRecoveryEnabled": True}
VALUE_BYTES = 200
TREE = "data.mdb"


class Told(dict[str, Any]):
    """Figures that are printed and saved as they are set."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.perf_counter()

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        minutes = (time.perf_counter() - self._started) / 60
        shown = f"{value:>14,}" if isinstance(value, int | float) else f"  {value}"
        sys.stdout.write(f"{minutes:5.1f} min  {name:30} {shown}\n")
        sys.stdout.flush()
        keep(self, RESULTS / "recovery.json")


def item(number: int, value: str | None = None) -> dict[str, Any]:
    content = value or "v" * VALUE_BYTES
    return {"pk": {"S": f"key{number}"}, "v": {"S": content}, "n": {"N": str(number)}}


def batches(table: str, count: int) -> Iterator[tuple[str, Any]]:
    for at in range(0, count, 25):
        puts = [{"PutRequest": {"Item": item(n)}} for n in range(at, min(at + 25, count))]
        yield "BatchWriteItem", {"RequestItems": {table: puts}}


def puts(table: str, start: int, count: int) -> Iterator[tuple[str, Any]]:
    for number in range(start, start + count):
        yield "PutItem", {"TableName": table, "Item": item(number)}


async def rate(count: int, work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return count / (time.perf_counter() - started)


async def beside(port: int, pid: int, work: Awaitable[Any]) -> tuple[float, float]:
    """Does some work; returns the p99 of another client's GetItem in milliseconds meanwhile, and
    the most memory that the server had."""
    connection = await Connection.to(port)
    times: list[float] = []
    memory = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        started = time.perf_counter()
        key = {"pk": {"S": f"key{len(times) % 1000}"}}
        await connection.ask("GetItem", {"TableName": "source", "Key": key})
        times.append(time.perf_counter() - started)
        if len(times) % MEMORY_EVERY == 1:
            memory = max(memory, memory_mb(pid))
        await asyncio.sleep(0.002)
    await task
    return sorted(times)[int(len(times) * 0.99)] * 1000, memory


async def compare_writes(port: int, connection: Connection, count: int, results: Told) -> None:
    """Compares plain writes and writes with recovery, in turns, so that other load affects both."""
    setting = {"TableName": "recovered", "PointInTimeRecoverySpecification": ON}
    await connection.ask("UpdateContinuousBackups", setting)
    seconds = {"plain": 0.0, "recovered": 0.0}
    each = count // ROUNDS
    for number in range(ROUNDS):
        for name in sorted(seconds, reverse=bool(number % 2)):
            started = time.perf_counter()
            await spread(port, puts(name, number * each, each))
            seconds[name] += time.perf_counter() - started
    results["PutItem"] = round(ROUNDS * each / seconds["plain"])
    results["PutItem with recovery"] = round(ROUNDS * each / seconds["recovered"])
    results["share of plain %"] = round(100 * seconds["plain"] / seconds["recovered"])


def memory_mb(pid: int) -> float:
    """Returns the private memory of a process and its children, without the mapped tree."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        # The process has ended.
        return 0.0
    own = status.partition("RssAnon:")[2].split()
    return (int(own[0]) / 1024 if own else 0.0) + sum(memory_mb(int(child)) for child in children)


async def measure(port: int, pid: int, folder: Path, count: int, results: Told) -> None:
    connection = await Connection.to(port)
    ask = connection.ask
    results["items"] = count

    async def active(name: str) -> None:
        path = ("Table", "TableStatus")
        await until(connection, "DescribeTable", {"TableName": name}, path, "ACTIVE")

    async def timed(name: str, work: Awaitable[Any]) -> None:
        started = time.perf_counter()
        p99, memory = await beside(port, pid, work)
        results[name] = round(count / (time.perf_counter() - started))
        results[f"{name} p99 ms"] = round(p99, 2)
        results[f"{name} MB"] = round(memory)
        if name in COMPARED:
            results[f"{name} x"] = round(results[name] / results["BatchWriteItem"], 2)

    for name in ("source", "plain", "recovered"):
        await ask("CreateTable", schema(name))
    results["BatchWriteItem"] = round(
        await rate(count, lambda: spread(port, batches("source", count)))
    )
    await compare_writes(port, connection, min(count // 2, WRITES_MAX), results)

    backups: list[str] = []

    async def backup() -> None:
        answer = await ask("CreateBackup", {"TableName": "source", "BackupName": "bench"})
        arn = answer["BackupDetails"]["BackupArn"]
        backups.append(arn)
        path = ("BackupDescription", "BackupDetails", "BackupStatus")
        await until(connection, "DescribeBackup", {"BackupArn": arn}, path, "AVAILABLE")

    started = time.perf_counter()
    await timed("backup", backup())
    results["backup s"] = round(time.perf_counter() - started, 1)
    chunks = (folder / "data" / "recovery" / "chunks").rglob("*")
    results["backup bytes"] = sum(path.stat().st_size for path in chunks if path.is_file())

    async def restore() -> None:
        request = {"TargetTableName": "restored", "BackupArn": backups[0]}
        await ask("RestoreTableFromBackup", request)
        await active("restored")

    await timed("restore", restore())
    table_arn = (await ask("DescribeTable", {"TableName": "source"}))["Table"]["TableArn"]

    async def base() -> None:
        setting = {"TableName": "source", "PointInTimeRecoverySpecification": ON}
        await ask("UpdateContinuousBackups", setting)
        number = 0
        while "EarliestRestorableDateTime" not in str(
            await ask("DescribeContinuousBackups", {"TableName": "source"})
        ):
            number += 1
            changed = item(number % count, "w" * VALUE_BYTES)
            await ask("PutItem", {"TableName": "source", "Item": changed})

    tree = folder / "data" / TREE
    before = tree.stat().st_size
    await timed("base", base())
    results["base growth %"] = round(100 * (tree.stat().st_size - before) / before, 1)

    async def export() -> None:
        request = {"TableArn": table_arn, "S3Bucket": "bench"}
        answer = await ask("ExportTableToPointInTime", request)
        arn = answer["ExportDescription"]["ExportArn"]
        path = ("ExportDescription", "ExportStatus")
        await until(connection, "DescribeExport", {"ExportArn": arn}, path, "COMPLETED")

    await timed("export", export())

    async def load() -> None:
        request = {
            "S3BucketSource": {"S3Bucket": "bench", "S3KeyPrefix": _data_folder(folder)},
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
            "TableCreationParameters": schema("imported"),
        }
        answer = await ask("ImportTable", request)
        arn = answer["ImportTableDescription"]["ImportArn"]
        path = ("ImportTableDescription", "ImportStatus")
        await until(connection, "DescribeImport", {"ImportArn": arn}, path, "COMPLETED")

    await timed("import", load())

    async def bulk() -> None:
        source = {
            "S3Bucket": "bench",
            "S3KeyPrefix": _data_folder(folder),
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
        }
        request = {
            "TableName": "filled",
            "InputS3Configuration": source,
            "OutputS3Configuration": {"S3Bucket": "bench", "OutputType": ["ERROR"]},
        }
        answer = await ask("StartBulkPutItems", request)
        arn = answer["BulkOperationDescription"]["BulkOperationArn"]
        path = ("BulkOperationDescription", "BulkOperationStatus")
        await until(
            connection, "DescribeBulkOperation", {"BulkOperationArn": arn}, path, "COMPLETED"
        )

    await ask("CreateTable", schema("filled"))
    await timed("bulk", bulk())

    async def whole() -> None:
        options = ("backup", str(folder / "place"), "--no-check", "--endpoint")
        command = (*processes.COMMAND, *options, f"http://127.0.0.1:{port}")
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait():
            raise RuntimeError("backup")

    await timed("whole backup", whole())


def _data_folder(folder: Path) -> str:
    found = next((folder / "bucket").rglob("data"))
    return found.relative_to(folder / "bucket").as_posix()


def main() -> None:
    global VALUE_BYTES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--value-bytes", type=int, default=VALUE_BYTES)
    parser.add_argument("--restore-mb", type=int, default=1024, help="0 leaves it out")
    asked = parser.parse_args()
    VALUE_BYTES = asked.value_bytes
    results = Told()
    with tempfile.TemporaryDirectory(prefix="partita-recovery-") as name:
        folder = Path(name)
        (folder / "bucket").mkdir()
        settings = folder / "partita.toml"
        settings.write_text(f'[[buckets]]\nname = "bench"\nfolder = "{folder / "bucket"}"\n')
        with processes.starting() as start:
            options = ("--port", "0", "--data", str(folder / "data"), "--config", str(settings))
            server = start("serve", *options)
            asyncio.run(measure(server.port, server.process.pid, folder, asked.items, results))
        if asked.restore_mb:
            for name, value in side_by_side(folder, asked.restore_mb):
                results[name] = value


if __name__ == "__main__":
    main()
