"""The suite that all engines pass (`tests/storage/test_engine.py`), over PostgreSQL.

Left out is what it says of folders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from partita.database.storage.postgresql import postgresql_schema
from partita.database.storage.postgresql.postgresql_pool import connected
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

from ..storage import test_engine
from ..storage.test_engine import Batches, check_sorted_dict, commits, keys
from .engine import PostgresqlEngine

OF_FOLDERS = {
    "test_a_folder_serves_one_engine_at_a_time",
    "test_a_folder_that_cannot_be_made_is_refused",
}
globals().update(
    (name, test)
    for name, test in vars(test_engine).items()
    if name.startswith("test_") and name not in OF_FOLDERS
)

pytestmark = pytest.mark.soak

Open = Callable[[Path], PostgresqlEngine]


@pytest.fixture(scope="module")
def url(postgresql: PostgreSQL) -> str:
    url = storage_url(postgresql, "engine")

    async def init() -> None:
        async with connected(url) as connection:
            await postgresql_schema.init(connection, {})

    asyncio.run(init())
    return url


@pytest.fixture(params=[False, True], ids=["fetched", "at_rest"])
def open_engine(request: pytest.FixtureRequest, postgresql: PostgreSQL, url: str) -> Open:
    """An empty engine for each test."""
    postgresql.execute("TRUNCATE partita_rows", "engine")
    return lambda folder: PostgresqlEngine(url, is_at_rest=request.param)


@pytest.fixture
def engine(open_engine: Open, tmp_path: Path) -> Iterator[PostgresqlEngine]:
    opened = open_engine(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize("is_at_rest", [False, True], ids=["fetched", "at_rest"])
def test_an_engine_is_a_sorted_dict(postgresql: PostgreSQL, url: str, is_at_rest: bool) -> None:
    @settings(max_examples=60, deadline=None)
    @given(**commits, extra=keys)
    def check(batches: Batches, bounds: list[bytes], extra: bytes) -> None:
        postgresql.execute("TRUNCATE partita_rows", "engine")
        engine = PostgresqlEngine(url, is_at_rest=is_at_rest)
        try:
            check_sorted_dict(engine, batches, bounds, extra)
        finally:
            engine.close()

    check()
