"""What backups, recovery, restores, exports and imports cost, on this machine.

    python -m benchmarks.recovery [--items 200000]

One server with a data folder, durable. Rates are items a second; the p99 is that of GetItem from
one other connection meanwhile; MB are the server's own memory afterwards. The whole backup has six
tables of so many items; its rate counts those of one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS, keep
from tests import processes

CONNECTIONS = 16
ROUNDS = 8
WRITES_MAX = 80_000
ON = {"PointInTimeRecoveryEnabled": True}
VALUE = "v" * 200
HEADERS = (
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n"
    "X-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/20260101/"
    "us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n"
)


class Connection:
    """Plain requests over one socket: less work than a client of AWS's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, operation: str, request: Any) -> Any:
        body = json.dumps(request)
        target = f"X-Amz-Target: DynamoDB_20120810.{operation}\r\n"
        self._writer.write(f"{HEADERS}{target}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
        answer = json.loads(await self._reader.readexactly(length))
        if " 200 " not in lines[0]:
            raise RuntimeError(f"{operation}: {answer}")
        return answer


def item(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"key{number}"}, "v": {"S": VALUE}, "n": {"N": str(number)}}


def schema(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


async def spread(port: int, requests: Iterator[tuple[str, Any]]) -> None:
    async def work() -> None:
        connection = await Connection.to(port)
        for operation, request in requests:
            await connection.ask(operation, request)

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


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


async def beside(port: int, work: Awaitable[Any]) -> float:
    """The p99 of another client's GetItem in milliseconds, while something is done."""
    connection = await Connection.to(port)
    times: list[float] = []
    task = asyncio.ensure_future(work)
    while not task.done():
        started = time.perf_counter()
        key = {"pk": {"S": f"key{len(times) % 1000}"}}
        await connection.ask("GetItem", {"TableName": "source", "Key": key})
        times.append(time.perf_counter() - started)
        await asyncio.sleep(0.002)
    await task
    return sorted(times)[int(len(times) * 0.99)] * 1000


async def compare_writes(
    port: int, connection: Connection, count: int, results: dict[str, Any]
) -> None:
    """Plain writes and those with recovery, in turns: what else the machine does is shared."""
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
    """What a process has of its own: pages of the tree are the system's."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


async def measure(port: int, pid: int, folder: Path, count: int) -> dict[str, Any]:
    connection = await Connection.to(port)
    ask = connection.ask
    results: dict[str, Any] = {"items": count}

    async def until(operation: str, request: Any, path: tuple[str, ...], status: str) -> None:
        while True:
            answer = await ask(operation, request)
            for name in path:
                answer = answer[name]
            if answer == status:
                return
            if answer == "FAILED":
                raise RuntimeError(operation)
            await asyncio.sleep(0.01)

    async def active(name: str) -> None:
        await until("DescribeTable", {"TableName": name}, ("Table", "TableStatus"), "ACTIVE")

    async def timed(name: str, work: Awaitable[Any]) -> None:
        started = time.perf_counter()
        results[f"{name} p99 ms"] = round(await beside(port, work), 2)
        results[name] = round(count / (time.perf_counter() - started))
        results[f"{name} MB"] = round(memory_mb(pid))

    for name in ("source", "plain", "recovered"):
        await ask("CreateTable", schema(name))
    results["BatchWriteItem"] = round(
        await rate(count, lambda: spread(port, batches("source", count)))
    )
    await compare_writes(port, connection, min(count // 2, WRITES_MAX), results)

    async def backup() -> None:
        answer = await ask("CreateBackup", {"TableName": "source", "BackupName": "bench"})
        arn = answer["BackupDetails"]["BackupArn"]
        results["arn"] = arn
        path = ("BackupDescription", "BackupDetails", "BackupStatus")
        await until("DescribeBackup", {"BackupArn": arn}, path, "AVAILABLE")

    await timed("backup", backup())
    chunks = (folder / "data" / "recovery" / "chunks").rglob("*")
    results["backup bytes"] = sum(path.stat().st_size for path in chunks if path.is_file())

    async def restore() -> None:
        request = {"TargetTableName": "restored", "BackupArn": results.pop("arn")}
        await ask("RestoreTableFromBackup", request)
        await active("restored")

    await timed("restore", restore())
    table_arn = (await ask("DescribeTable", {"TableName": "source"}))["Table"]["TableArn"]
    await ask(
        "UpdateContinuousBackups", {"TableName": "source", "PointInTimeRecoverySpecification": ON}
    )
    while "EarliestRestorableDateTime" not in str(
        await ask("DescribeContinuousBackups", {"TableName": "source"})
    ):
        await asyncio.sleep(0.05)

    async def export() -> None:
        request = {"TableArn": table_arn, "S3Bucket": "bench"}
        answer = await ask("ExportTableToPointInTime", request)
        arn = answer["ExportDescription"]["ExportArn"]
        path = ("ExportDescription", "ExportStatus")
        await until("DescribeExport", {"ExportArn": arn}, path, "COMPLETED")

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
        await until("DescribeImport", {"ImportArn": arn}, path, "COMPLETED")

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
        await until("DescribeBulkOperation", {"BulkOperationArn": arn}, path, "COMPLETED")

    await ask("CreateTable", schema("filled"))
    await timed("bulk", bulk())

    async def whole() -> None:
        options = ("backup", str(folder / "place"), "--no-check", "--endpoint")
        command = (*processes.COMMAND, *options, f"http://127.0.0.1:{port}")
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait():
            raise RuntimeError("backup")

    await timed("whole backup", whole())
    return results


def _data_folder(folder: Path) -> str:
    found = next((folder / "bucket").rglob("data"))
    return found.relative_to(folder / "bucket").as_posix()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    count = parser.parse_args().items
    with tempfile.TemporaryDirectory(prefix="partita-recovery-") as name:
        folder = Path(name)
        (folder / "bucket").mkdir()
        settings = folder / "partita.toml"
        settings.write_text(f'[[buckets]]\nname = "bench"\nfolder = "{folder / "bucket"}"\n')
        with processes.starting() as start:
            options = ("--port", "0", "--data", str(folder / "data"), "--config", str(settings))
            server = start("serve", *options)
            results = asyncio.run(measure(server.port, server.process.pid, folder, count))
    keep(results, RESULTS / "recovery.json")
    for key, value in results.items():
        sys.stdout.write(f"{key:24} {value:>14,}\n")


if __name__ == "__main__":
    main()
