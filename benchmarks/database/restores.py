"""The same data restored three ways, for scale: Partita's RestoreTableFromBackup, a copy of
DynamoDB Local's file, and pg_restore into PostgreSQL.

Part of `python -m benchmarks.database.recovery`. Items have 4 KB of hexadecimal digits, which
compress to a half. A table is restored when it is ACTIVE, a file is copied when it is synced, and
PostgreSQL syncs as it does by default. DynamoDB Local is filled in memory where there is room, as
it waits for the disk at every put, and for some minutes at most: a line says how much it got. Its
file is then copied to the disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.database.shared import SyncedPostgreSQL
from benchmarks.drivers.plain_requests import Connection, schema, spread, until
from benchmarks.servers.measured_servers import SERVERS, Running
from benchmarks.servers.peers import Unavailable
from partita.assembly.database_engines import MEMORY_FOLDER
from testkit.servers import processes
from testkit.servers.database_servers import find

ITEM_BYTES = 4096
MB = 1 << 20
BATCH = 25
TABLE = "large"
FILL_SECONDS_MAX = 180.0
DYNAMODB_LOCAL_FILE = "shared-local-instance.db"


class Restored(NamedTuple):
    seconds: float
    megabytes: int


def items(megabytes: int) -> Iterator[dict[str, Any]]:
    pick = random.Random(1)
    for number in range(megabytes * MB // ITEM_BYTES):
        yield {"pk": {"S": f"key{number}"}, "v": {"S": pick.randbytes(ITEM_BYTES // 2).hex()}}


def side_by_side(folder: Path, megabytes: int) -> Iterator[tuple[str, Any]]:
    """Yields measurements as they are done."""
    yield "restored MB", megabytes
    for name, restore in (
        ("Partita", _partita),
        ("DynamoDB Local's file copy", _dynamodb_local),
        ("pg_restore", _pg_restore),
    ):
        with tempfile.TemporaryDirectory(prefix="restore-", dir=folder) as place:
            try:
                restored = restore(Path(place), megabytes)
                yield f"{name} s", round(restored.seconds, 1)
                if restored.megabytes != megabytes:
                    yield f"{name} MB", restored.megabytes
            except Unavailable as why:
                yield f"{name} s", f"not measured: {why}"


def _partita(place: Path, megabytes: int) -> Restored:
    bucket = place / "bucket"
    bucket.mkdir()
    with (bucket / "items.json").open("w") as file:
        for item in items(megabytes):
            file.write(json.dumps({"Item": item}) + "\n")
    config = place / "partita.toml"
    config.write_text(f'[[buckets]]\nname = "bench"\nfolder = "{bucket}"\n')
    with processes.starting() as start:
        options = ("--port", "0", "--data", str(place / "data"), "--config", str(config))
        server = start("serve", *options)
        return Restored(asyncio.run(_restore_table(server.port)), megabytes)


async def _restore_table(port: int) -> float:
    connection = await Connection.to(port)
    ask = connection.ask
    source = {"S3Bucket": "bench", "S3KeyPrefix": "items"}
    asked = {"S3BucketSource": source, "InputFormat": "DYNAMODB_JSON"}
    answer = await ask("ImportTable", {**asked, "TableCreationParameters": schema(TABLE)})
    arn = answer["ImportTableDescription"]["ImportArn"]
    path = ("ImportTableDescription", "ImportStatus")
    await until(connection, "DescribeImport", {"ImportArn": arn}, path, "COMPLETED")
    active = ("Table", "TableStatus")
    await until(connection, "DescribeTable", {"TableName": TABLE}, active, "ACTIVE")
    answer = await ask("CreateBackup", {"TableName": TABLE, "BackupName": "bench"})
    arn = answer["BackupDetails"]["BackupArn"]
    available = ("BackupDescription", "BackupDetails", "BackupStatus")
    await until(connection, "DescribeBackup", {"BackupArn": arn}, available, "AVAILABLE")
    started = time.perf_counter()
    await ask("RestoreTableFromBackup", {"TargetTableName": "restored", "BackupArn": arn})
    await until(connection, "DescribeTable", {"TableName": "restored"}, active, "ACTIVE")
    return time.perf_counter() - started


def _dynamodb_local(place: Path, megabytes: int) -> Restored:
    server = next(one for one in SERVERS if one.label == "dynamodb-local/disk")
    with tempfile.TemporaryDirectory(prefix="restore-", dir=_roomy(place, megabytes)) as filled:
        running = Running(server, Path(filled))
        try:
            filled_megabytes = asyncio.run(_fill(running.port, megabytes))
        finally:
            running.close()
        started = time.perf_counter()
        copy = place / "copy.db"
        shutil.copyfile(Path(filled) / DYNAMODB_LOCAL_FILE, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        return Restored(time.perf_counter() - started, filled_megabytes)


def _roomy(place: Path, megabytes: int) -> Path:
    """Returns a folder in memory if a third of its free space suffices, else the given place."""
    room = MEMORY_FOLDER.exists() and shutil.disk_usage(MEMORY_FOLDER).free > 3 * megabytes * MB
    return MEMORY_FOLDER if room else place


async def _fill(port: int, megabytes: int) -> int:
    """Fills the table until it has so many megabytes or the time is over; returns its size."""
    connection = await Connection.to(port)
    await connection.ask("CreateTable", schema(TABLE))
    deadline = time.monotonic() + FILL_SECONDS_MAX
    batches = 0

    def requests() -> Iterator[tuple[str, Any]]:
        nonlocal batches
        left = items(megabytes)
        while (batch := list(islice(left, BATCH))) and time.monotonic() < deadline:
            batches += 1
            puts = [{"PutRequest": {"Item": item}} for item in batch]
            yield "BatchWriteItem", {"RequestItems": {TABLE: puts}}

    await spread(port, requests())
    return min(megabytes, round(batches * BATCH * ITEM_BYTES / MB))


def _pg_restore(place: Path, megabytes: int) -> Restored:
    if find("postgres") is None or find("pg_restore") is None:
        raise Unavailable("PostgreSQL is not installed")
    with SyncedPostgreSQL() as server:
        source = server.create("source", "CREATE TABLE large (pk text PRIMARY KEY, v text)")
        with (
            server.connect("source") as connection,
            connection.cursor() as cursor,
            cursor.copy("COPY large FROM STDIN") as copy,
        ):
            for item in items(megabytes):
                copy.write_row((item["pk"]["S"], item["v"]["S"]))
        target = server.create("target")
        environment = {**os.environ, "PGPASSWORD": server.password}
        dump = place / "dump"
        command = [str(find("pg_dump")), "-Fc", "-Z1", "-f", str(dump), source]
        subprocess.run(command, env=environment, check=True)
        started = time.perf_counter()
        command = [str(find("pg_restore")), "-d", target, str(dump)]
        subprocess.run(command, env=environment, check=True)
        return Restored(time.perf_counter() - started, megabytes)
