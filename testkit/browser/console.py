"""One server and one browser for all tests of the console; each has tables of its own."""

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
"""What Chromium logs about requests that the database refuses; the page tells it in words."""
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
"""Pictures that docs/how-to/use-the-console.md shows, and their names there."""
SCREENSHOTS = "PARTITA_SCREENSHOTS"
"""A folder; without it, pictures go where pytest keeps what tests write."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    found = Server("serve", "--in-memory", "--port", "0", "--capacity", "observe")
    yield found
    found.terminate()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Starts processes of `partita`, which end with the test."""
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
    """Who leaves a page without complaints behind."""
    # The page of the test before may still ask for a server that has gone.
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
    """Names that no table has yet."""
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
    """Where pictures go; those that the docs show are copied there, where a folder is named."""
    named = os.environ.get(SCREENSHOTS)
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(exist_ok=True)
    yield folder
    for name, documented in DOCUMENTED.items() if named else ():
        if (folder / f"{name}.png").exists():
            shutil.copy(folder / f"{name}.png", PICTURES / f"console-{documented}.png")
