"""The move: load, follow and verify, from MariaDB and from PostgreSQL, on this machine.

    python -m benchmarks.moving --rows 5000000 --changes 1000000

Client, source and target share the machine. The load is compared with a plain client that writes
the same number of items of the same shape with BatchWriteItem.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from partita.client import Client
from partita.migrate.folder import Folder
from partita.migrate.model.files import read_design
from partita.migrate.moving.follow import follow
from partita.migrate.moving.load import load
from partita.migrate.moving.verify import verify
from partita.migrate.proving.private_server import private_server
from tests.migrate.moving.conftest import LoggedMariaDB, LoggedPostgreSQL, Sql
from tests.migrate.moving.test_move import PATTERNS, SCHEMA
from tests.migrate.servers import DatabaseServer

SERVERS: dict[str, type[DatabaseServer]] = {"mysql": LoggedMariaDB, "postgresql": LoggedPostgreSQL}
AUTHORS = 1000
INSERTED = 5000
BATCH_ITEMS = 25
AT_ONCE = 32
CHANGES_IN_ONE = 100


def filled(source: Sql, rows: int) -> None:
    authors = ",".join(f"({n}, 'a{n}@example.org', 'Author {n}')" for n in range(AUTHORS))
    source.run(f"INSERT INTO author VALUES {authors}")
    for first in range(0, rows, INSERTED):
        books = ",".join(
            f"({n}, {n % AUTHORS}, 'Title of book {n}', {n % 100}.50)"
            for n in range(first, min(first + INSERTED, rows))
        )
        source.run(f"INSERT INTO book VALUES {books}")


def changed(source: Sql, changes: int) -> None:
    for first in range(0, changes, CHANGES_IN_ONE):
        numbers = range(first, min(first + CHANGES_IN_ONE, changes))
        source.run(";".join(f"UPDATE book SET price = price + 1 WHERE id = {n}" for n in numbers))


def plain_items_per_second(endpoint: str, table: str, keys: list[str], items: int) -> float:
    async def run() -> float:
        client = Client(endpoint, connections=AT_ONCE)
        gate = asyncio.Semaphore(AT_ONCE)

        def item(number: int) -> dict[str, Any]:
            own = {name: {"S": f"plain#{number}"} for name in keys}
            title = {"S": f"Title of book {number}"}
            return {**own, "id": {"N": str(number)}, "title": title, "price": {"N": "7.5"}}

        async def put(first: int) -> None:
            async with gate:
                puts = [
                    {"PutRequest": {"Item": item(n)}} for n in range(first, first + BATCH_ITEMS)
                ]
                await client.call("dynamodb", "BatchWriteItem", {"RequestItems": {table: puts}})

        began = time.perf_counter()
        await asyncio.gather(*(put(first) for first in range(0, items, BATCH_ITEMS)))
        await client.close()
        return items / (time.perf_counter() - began)

    return asyncio.run(run())


def measure(kind: str, rows: int, changes: int) -> None:
    with SERVERS[kind]() as server, TemporaryDirectory() as space, private_server() as endpoint:
        source = Sql(kind, Path(space), server, SCHEMA)
        filled(source, rows)
        folder: Folder = source.folder(PATTERNS, endpoint)
        loaded = load(folder, endpoint, is_followed=True)
        items = sum(one.items for one in loaded.tables)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        changed(source, changes)
        followed = follow(folder, endpoint, is_once=True)
        verified = verify(folder, endpoint)
        table = read_design(folder).tables[0]
        keys = [key.name for key in table.keys]
        plain = plain_items_per_second(endpoint, table.name, keys, min(items, 50_000))
        rate = items / loaded.seconds
        lines = (
            f"{kind}: load {rate:,.0f} items/s of {rows:,} rows, {rate / plain:.0%} of a plain"
            f" client's {plain:,.0f}; {memory} MB",
            f"{kind}: follow {followed.changes / followed.seconds:,.0f} changes/s",
            f"{kind}: verify {verified.rows / verified.seconds:,.0f} rows/s,"
            f" {verified.different} differences",
        )
        sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=20_000)
    asked = parser.parse_args()
    import os

    from partita.migrate.understanding.sources.address import PASSWORD_ENV
    from tests.migrate.servers import PASSWORD

    os.environ.setdefault(PASSWORD_ENV, PASSWORD)
    for kind in SERVERS:
        measure(kind, asked.rows, asked.changes)


if __name__ == "__main__":
    main()
