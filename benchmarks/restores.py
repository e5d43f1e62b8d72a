"""The same data restored three ways, for scale: Partita's RestoreTableFromBackup, a copy of
DynamoDB Local's file, and pg_restore into PostgreSQL.

Part of `python -m benchmarks.recovery`. Items have 4 KB of hexadecimal digits, which compress to a
half. A table is restored when it is ACTIVE, a file is copied when it is synced, and PostgreSQL
syncs as it does by default.
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
from pathlib import Path
from typing import Any

from benchmarks.peers import Unavailable
from benchmarks.plain_requests import Connection, schema, spread, until
from benchmarks.servers import SERVERS, Running
from benchmarks.shared import SyncedPostgreSQL
from tests import processes
from tests.migrate.servers import find

ITEM_BYTES = 4096
MB = 1 << 20
BATCH = 25
TABLE = "large"
DYNAMODB_LOCAL_FILE = "shared-local-instance.db"


def items(megabytes: int) -> Iterator[dict[str, Any]]:
    pick = random.Random(1)
    for number in range(megabytes * MB // ITEM_BYTES):
        yield {"pk": {"S": f"key{number}"}, "v": {"S": pick.randbytes(ITEM_BYTES // 2).hex()}}


def side_by_side(folder: Path, megabytes: int) -> dict[str, Any]:
    results: dict[str, Any] = {"restored MB": megabytes}
    for name, restore in (
        ("Partita", _partita),
        ("DynamoDB Local's file copy", _dynamodb_local),
        ("pg_restore", _pg_restore),
    ):
        with tempfile.TemporaryDirectory(prefix="restore-", dir=folder) as place:
            try:
                results[f"{name} s"] = round(restore(Path(place), megabytes), 1)
            except Unavailable as why:
                results[f"{name} s"] = f"not measured: {why}"
    return results


def _partita(place: Path, megabytes: int) -> float:
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
        return asyncio.run(_restore_table(server.port))


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


def _dynamodb_local(place: Path, megabytes: int) -> float:
    server = next(one for one in SERVERS if one.label == "dynamodb-local/disk")
    running = Running(server, place)
    try:
        asyncio.run(_fill(running.port, megabytes))
    finally:
        running.close()
    started = time.perf_counter()
    copy = place / "copy.db"
    shutil.copyfile(place / DYNAMODB_LOCAL_FILE, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - started


async def _fill(port: int, megabytes: int) -> None:
    connection = await Connection.to(port)
    await connection.ask("CreateTable", schema(TABLE))

    def requests() -> Iterator[tuple[str, Any]]:
        puts: list[Any] = []
        for item in items(megabytes):
            puts.append({"PutRequest": {"Item": item}})
            if len(puts) == BATCH:
                yield "BatchWriteItem", {"RequestItems": {TABLE: puts}}
                puts = []

    await spread(port, requests())


def _pg_restore(place: Path, megabytes: int) -> float:
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
        return time.perf_counter() - started
