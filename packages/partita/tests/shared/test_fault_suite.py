"""The fault suite (`tests/faults`) over PostgreSQL: the same kills, the same promises.

Left out is what it says of files (damage, disks, power, durability): PostgreSQL has its own. Full
disks and lost connections are in this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.servers import processes
from testkit.servers.database_servers import PostgreSQL
from testkit.servers.shared_storage import storage_url

from ..faults import (
    conftest,
    test_events,
    test_kill,
    test_large_requests,
    test_streams,
    test_triggers,
)
from ..faults.conftest import Serve

OF_NO_STORAGE = "test_every_request_may_be_decided_as_a_large_one_is"
globals().update(
    (name, test)
    for module in (test_events, test_kill, test_large_requests, test_streams, test_triggers)
    for name, test in vars(module).items()
    if name.startswith("test_") and name != OF_NO_STORAGE
)
beside, seed = test_large_requests.beside, conftest.seed

pytestmark = pytest.mark.soak

Place = Callable[[Path], str]


@pytest.fixture
def place(postgresql: PostgreSQL, request: pytest.FixtureRequest) -> Place:
    """The database that replaces a data folder."""
    urls: dict[Path, str] = {}

    def url_of(folder: Path) -> str:
        if folder not in urls:
            name = f"faults_{abs(hash((request.node.name, folder))):x}"
            urls[folder] = storage_url(postgresql, name)
            assert processes.run("storage", "init", urls[folder]).returncode == 0
        return urls[folder]

    return url_of


@pytest.fixture
def serve(place: Place) -> Iterator[Serve]:
    with processes.starting() as start:

        def serve_storage(folder: Path, *options: str, **popen: Any) -> processes.Server:
            return start("serve", "--port", "0", "--storage", place(folder), *options, **popen)

        yield serve_storage


@pytest.fixture
def assert_clean(place: Place) -> Callable[[Path], None]:
    def look(folder: Path) -> None:
        completed = processes.run("storage", "check", place(folder))
        assert completed.returncode == 0, completed.stdout[-5000:] + completed.stderr
        assert completed.stdout.endswith("no findings.\n")

    return look
