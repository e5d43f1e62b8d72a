"""`partita migrate` as people call it: output, exit codes, and passwords that are not shown."""

from __future__ import annotations

import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita_migrate.commands import migrate
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import SourceSettings
from testkit import ROOT
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .conftest import MakeFolder

WRONG = "wr0ng-s3cret"
SOURCES = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, SOURCES))}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """`run("plan", folder)`: a command that ends by itself, with nobody to ask."""

    def execute(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "partita.cli", "migrate", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**ENVIRONMENT, **environment},
        )

    return execute


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a small SQLite shop and two patterns."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE);
        CREATE TABLE orders (
            id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers,
            ordered_at TEXT NOT NULL, total NUMERIC);
        INSERT INTO customers VALUES (1, '[bold]Ann[/bold]', 'a@x'), (2, 'Bob', 'b@x');
        INSERT INTO orders SELECT value, 1 + value % 2, '2026-01-0' || (1 + value % 9), value
            FROM generate_series(1, 100);
        """.replace("FROM generate_series(1, 100)", _NUMBERS)
    )
    connection.close()
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///shop.db"\n')
    (tmp_path / "patterns.toml").write_text(
        """
        [[pattern]]
        name = "customer by id"
        sql = "SELECT * FROM customers WHERE id = ?"
        rate = "100/s"
        [[pattern]]
        name = "orders of a customer"
        sql = "SELECT * FROM orders WHERE customer_id = ? ORDER BY ordered_at DESC LIMIT 10"
        rate = "20/s"
        """
    )
    return tmp_path


_NUMBERS = """FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n
    WHERE value < 100) SELECT value FROM n)"""

STAGES = {
    "plan": ["inventory.json", "plan.json", "plan.md"],
    "analyze": ["analysis.json"],
    "model": ["model.denormalized.toml", "model.single-table.toml", "model.toml"],
    "estimate": ["estimate.json", "estimate.csv"],
    "report": ["report.html"],
}


def test_all_stages_in_their_order(run: Run, shop: Path) -> None:
    for stage, files in STAGES.items():
        ended = run(stage, shop)
        assert (ended.returncode, ended.stderr) == (0, ""), stage
        assert ended.stdout.strip()
        assert all((shop / name).is_file() for name in files), stage
        answer = CliRunner().invoke(migrate, [stage, str(shop), "--json"])
        assert (answer.exit_code, answer.stderr) == (0, "")
        assert json.loads(answer.stdout)
    ended = run("model", shop, "--check")
    assert ended.returncode == 0, ended.stdout


def test_a_stage_before_its_time(run: Run, shop: Path) -> None:
    for stage in ("analyze", "model", "estimate"):
        ended = run(stage, shop)
        assert ended.returncode == 1
        assert "run `partita migrate" in ended.stderr and ended.stderr.count("\n") == 1


def test_usage(run: Run, shop: Path) -> None:
    assert run("plan", shop, "--bogus").returncode == 2
    assert run("plan", shop, "too many").returncode == 2
    assert run("estimate", shop, "--prices", "nowhere.toml").returncode == 2
    ended = run("plan", shop / "nowhere")
    assert ended.returncode == 1
    assert ended.stderr.endswith("is not a folder; a migration is a folder with migration.toml.\n")


def test_settings_that_are_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "migration.toml").write_text("[source]\nurl = ")
    ended = run("plan", tmp_path)
    assert ended.returncode == 1
    assert "is not valid TOML" in ended.stderr and ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("where", "flags"),
    [("environment", ()), ("url", ("--json",)), ("variable", ("--json",)), ("file", ())],
)
def test_a_wrong_password_is_never_shown(
    run: Run,
    server: DatabaseServer,
    make_folder: MakeFolder,
    tmp_path: Path,
    where: str,
    flags: tuple[str, ...],
) -> None:
    url = server.create("secrets", "CREATE TABLE t (a INT PRIMARY KEY)")
    (tmp_path / "secret").write_text(WRONG)
    settings = {
        "environment": (url, ""),
        "url": (url.replace("@", f":{WRONG}@"), ""),
        "variable": (url, 'password_env = "SHOP_PASSWORD"'),
        "file": (url, 'password_file = "secret"'),
    }
    folder = make_folder(*settings[where])
    ended = run("plan", folder.path, *flags, PARTITA_SOURCE_PASSWORD=WRONG, SHOP_PASSWORD=WRONG)
    assert ended.returncode == 1
    assert "check the user and the password" in ended.stderr
    assert ended.stderr.count("\n") == 1 and ended.stdout == ""
    assert WRONG not in ended.stderr


def test_a_person_at_a_terminal_is_asked(
    postgresql: DatabaseServer, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(postgresql.create("asking", "CREATE TABLE t (a INT PRIMARY KEY)"))
    monkeypatch.delenv(PASSWORD_ENV)
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "partita.cli", "migrate", "plan", str(folder.path)]
    environment = {**ENVIRONMENT, "TERM": "xterm"}
    environment.pop(PASSWORD_ENV, None)
    process = subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
    )
    os.close(end)
    try:
        shown = _read_until(terminal, b"/asking: ")
        assert b"\x1b[2K" not in shown, "nothing wipes out the prompt"
        os.write(terminal, PASSWORD.encode() + b"\n")
        shown = _read_until(terminal, b"plan.md")
        assert process.wait(timeout=120) == 0
        assert PASSWORD.encode() not in shown
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read_until(terminal: int, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], 120)
        assert ready, shown
        shown += os.read(terminal, 4096)
    return shown


def test_a_right_password_is_in_no_file(
    run: Run, server: DatabaseServer, make_folder: MakeFolder
) -> None:
    folder = make_folder(server.create("secrets", "CREATE TABLE t (a INT PRIMARY KEY)"))
    for stage in ("plan", "analyze"):
        ended = run(stage, folder.path, "--json", PARTITA_SOURCE_PASSWORD=PASSWORD)
        assert ended.returncode == 0, ended.stderr
        assert PASSWORD not in ended.stdout + ended.stderr
    for path in folder.path.iterdir():
        assert PASSWORD.encode() not in path.read_bytes(), path.name


def test_a_source_that_went_away_keeps_what_was_planned(run: Run, shop: Path) -> None:
    assert run("plan", shop).returncode == 0
    before = (shop / "inventory.json").read_bytes()
    (shop / "shop.db").unlink()
    ended = run("plan", shop)
    assert ended.returncode == 1 and "does not exist" in ended.stderr
    assert (shop / "inventory.json").read_bytes() == before


def test_other_commands_do_not_load_the_road_from_sql() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, partita.cli;"
            "slow = ('partita_migrate', 'sqlalchemy', 'rich');"
            "print([name for name in sys.modules if name.startswith(slow)])",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert loaded.stdout == "[]\n"


def test_the_page_tells_every_command_and_setting() -> None:
    page = (ROOT / "docs" / "reference" / "partita-migrate.md").read_text()
    settings = (*SourceSettings.__struct_fields__, *Goals.__struct_fields__)
    missing = [name for name in settings if f"`{name}`" not in page]
    missing += [name for name in migrate.commands if f"`partita migrate {name}`" not in page]
    assert missing == []
