"""Every way into the server has a row in the map of entries, which the documentation shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from secrets import token_hex
from typing import cast

import click
import pytest

from partita.assembly.server_entries import CONSOLE, ENTRIES, FILE, OPERATION, PAGE, PROCESS, page
from partita.assembly.service_registry import READS, WRITES
from partita.cli.serve_command import serve
from partita.console.console_endpoints import ConsoleEndpoint
from partita.console.console_service import Console
from partita.server.backup_service import _OPERATIONS as COPYING
from partita.server.companions.companion_peers import PATH
from partita.server.dispatch import PUBLIC_PATHS
from partita.server.monitoring.monitoring_pages import PAGES, TABLE_PAGES
from partita.server.security.administration.administration_api import _OPERATIONS as ADMINISTRATION
from partita.server.security.authentication.sts import OPERATIONS as STS
from partita.server.security.identities import service_roles
from partita_services.functions.api.lambda_registry import OPERATIONS as REST
from partita_services.workflows.api.step_functions_registry import OPERATIONS as STATES
from testkit import ROOT
from testkit.servers import processes

DOCS = ROOT / "docs"


def names(kind: str, **more: str) -> list[str]:
    return [
        name
        for entry in ENTRIES
        if entry.kind == kind and all(getattr(entry, one) == more[one] for one in more)
        for name in entry.names
    ]


def test_the_documentation_shows_the_map() -> None:
    assert (DOCS / "reference/entries.md").read_text() == page(), (
        "python -m partita.assembly.server_entries"
    )


def test_every_operation_has_one_row() -> None:
    registered = [
        *(name.removeprefix("Kinesis.") for name in {**READS, **WRITES}),
        *(*STATES, *ADMINISTRATION, *COPYING, *STS),
        *(name for service in REST.values() for name in service),
        *(one.decode() for one in (service_roles.CHECK, service_roles.SESSION)),
    ]
    assert sorted(names(OPERATION)) == sorted(registered)


def test_every_page_has_a_row() -> None:
    shown = {path.decode() for path in PUBLIC_PATHS} | {
        *PAGES,
        *TABLE_PAGES,
        "/metrics",
        "/requests",
    }
    others = {"/2015-03-31/functions/NAME/code", "*"}
    assert {*names(PAGE)} == shown | others


def test_every_route_of_the_console_has_a_row() -> None:
    console = Console(cast("ConsoleEndpoint", None), "on")
    routes = {
        (method, path)
        for found in console.web.routes.by_length.values()
        for path, route in found.items()
        for method in route.handlers
    }
    rows = {(entry.of, name) for entry in ENTRIES if entry.kind == CONSOLE for name in entry.names}
    assert rows == routes


def test_peers_and_processes_have_rows() -> None:
    assert f"{PATH.decode()}NAME" in names(PROCESS)


def test_every_option_that_names_a_file_has_a_row() -> None:
    files = (click.Path, click.File)
    options = {
        option.opts[0]
        for option in serve.params
        if isinstance(option.type, files) or option.name == "encryption_key"
    }
    assert {*names(FILE, of="options")} == options


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The entries of a server with everything switched on, after some use."""
    data, key = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("key") / "key"
    data.chmod(0o700)
    key.write_text(token_hex(32))
    key.chmod(0o600)
    sealing = ("--encryption-key", f"file:{key}")
    added = processes.run(
        *("users", "add", "ops", "--policy", "AdministratorAccess", "--data", data, *sealing)
    )
    assert added.returncode == 0, added.stderr
    options = ("serve", "--auth", "--port", "0", "--data", data, *sealing)
    with processes.starting() as start:
        start(*options)
        yield data


def test_every_file_of_a_data_folder_has_a_row(folder: Path) -> None:
    patterns = names(FILE, of="data folder")
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert found
    assert [name for name in found if not any(fnmatch(name, one) for one in patterns)] == []


def test_every_test_that_holds_a_promise_is_there() -> None:
    promised = set(re.findall(r"test_\w+\.py", (DOCS / "how-to/secure-a-server.md").read_text()))
    tests = {path.name for path in (ROOT / "packages").rglob("test_*.py")}
    assert promised and promised <= tests
