"""Fixtures: one server and one browser for all tests of the console; tests have own tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from testkit import ROOT
from testkit.browser.chromium import Browser, browsing, program
from testkit.browser.person import Person
from testkit.servers.processes import Server, starting

numbers = count(1)
FIRST_VIEW_BYTES_MAX = 300 * 1024
REFUSED = "Failed to load resource: the server responded with a status of 4"
"""Chromium logs this for requests that the database refuses; the page itself shows an error."""
PICTURES = ROOT / "docs/pictures"
DOCUMENTED = {
    "access": "access",
    "builder": "builder",
    "changes": "streams",
    "conflict": "conflict",
    "cutover": "cutover",
    "dark": "dark",
    "explorer": "explorer",
    "hot": "heat",
    "modeler": "modeler",
    "move": "move",
    "phone": "phone",
    "split": "split",
    "statement": "partiql",
    "tables-list": "tables",
    "time": "time",
    "workflows": "workflows",
}
"""The pictures in docs/how-to/use-the-console.md, and their file names there."""
SCREENSHOTS = "PARTITA_SCREENSHOTS"
"""The folder for pictures; without it, they are written to pytest's temporary folder."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    found = Server("serve", "--in-memory", "--port", "0", "--capacity", "observe")
    yield found
    found.terminate()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Starts `partita` processes, which end with the test."""
    with starting() as start_server:
        yield start_server


@pytest.fixture(scope="session")
def client(server: Server) -> Any:
    return server.client()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("needs Chromium (scripts/provision)")
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def person(chromium: Browser, server: Server) -> Iterator[Person]:
    """A person at the console; the test fails if a page has logged errors."""
    # The page of the previous test may still send requests to a server that has stopped.
    chromium.open("about:blank")
    chromium.complaints.clear()
    chromium.requested.clear()
    found = Person(chromium, server.url)
    yield found
    assert [text for text in chromium.complaints if not text.startswith(REFUSED)] == []
    own = (server.url, "about:", "blob:", "data:")
    assert [url for url in chromium.requested if not url.startswith(own)] == []


@pytest.fixture
def numbered() -> Callable[[], str]:
    """Returns unused table names."""
    return lambda: f"table-{next(numbers)}"


@pytest.fixture
def table(client: Any) -> Callable[..., str]:
    def create(key: str = "pk", sort: str | None = None, **more: Any) -> str:
        name = f"table-{next(numbers)}"
        keys = [(key, "HASH"), *([(sort, "RANGE")] if sort else [])]
        schema = {
            "KeySchema": [{"AttributeName": one, "KeyType": kind} for one, kind in keys],
            "AttributeDefinitions": [
                {"AttributeName": one, "AttributeType": "S"} for one, _ in keys
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        client.create_table(**{"TableName": name, **schema, **more})
        return name

    return create


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for pictures; those of the docs are copied to SCREENSHOTS, if that is set."""
    named = os.environ.get(SCREENSHOTS)
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(exist_ok=True)
    yield folder
    for name, documented in DOCUMENTED.items() if named else ():
        if (folder / f"{name}.png").exists():
            shutil.copy(folder / f"{name}.png", PICTURES / f"console-{documented}.png")
