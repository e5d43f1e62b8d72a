"""Migration folders with designs, and sources of moves: SQLite, and servers with a change log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

from partita_migrate.designing.model_stage import model
from partita_migrate.handover.create_stage import create
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.workspace.migration_folder import Folder
from testkit.data import shop
from testkit.servers.database_servers import MYSQL, DatabaseServer, MariaDB, PostgreSQL

_numbers = count(1)
SCHEMA = """
CREATE TABLE author (id INT PRIMARY KEY, email VARCHAR(80) NOT NULL UNIQUE, name VARCHAR(80));
CREATE TABLE book (
    id INT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(200), price DECIMAL(10, 2),
    FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE ON UPDATE CASCADE
);
"""
PATTERNS = {
    "author": "SELECT * FROM author WHERE id = ?",
    "log in": "SELECT id, name FROM author WHERE email = ?",
    "book with its author": (
        "SELECT b.*, a.name FROM book b JOIN author a ON a.id = b.author_id WHERE b.id = ?"
    ),
    "books of an author": "SELECT * FROM book WHERE author_id = ? ORDER BY title",
}


def script(authors: int = 10, books: int = 40) -> str:
    lines = [f"INSERT INTO author VALUES ({n}, 'a{n}@x', 'Author {n}');" for n in range(authors)]
    lines += [
        f"INSERT INTO book VALUES ({n}, {n % authors}, 'Title {n}', {n}.50);" for n in range(books)
    ]
    return SCHEMA + "\n".join(lines)


QUICK = "\n[test]\nload_calls = 0\nrecovery = false\n"
"""Settings for tests of access patterns only."""
KEEPING = f"foreign_keys = true\n{QUICK}"
"""Settings for SQLite as used by an application that enforces foreign keys."""


def designed(
    path: Path, url: str, patterns: dict[str, str] = shop.PATTERNS, more: str = QUICK
) -> Folder:
    """Creates a folder with both designs for some access patterns."""
    path.mkdir(exist_ok=True)
    (path / "migration.toml").write_text(f'[source]\nurl = "{url}"\n{more}')
    (path / "patterns.toml").write_text(shop.patterns_toml(patterns))
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    model(folder)
    return folder


def sqlite_database(path: Path, script: str) -> str:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA synchronous = OFF;\nBEGIN;\n{script}\nCOMMIT;")
    connection.close()
    return f"sqlite:///{path}"


class LoggedMariaDB(MariaDB):
    def command(self) -> list[str]:
        logged = ["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]
        return [*super().command(), *logged, "--binlog-row-metadata=FULL"]


class LoggedMySQL(LoggedMariaDB):
    make = MYSQL


class LoggedPostgreSQL(PostgreSQL):
    def command(self) -> list[str]:
        return [*super().command(), "--wal_level=logical", "--max_replication_slots=40"]


class Sql:
    """One database of a source server."""

    def __init__(self, kind: str, path: Path, server: DatabaseServer | None, script: str) -> None:
        self.kind = kind
        self.server = server
        self.path = path
        self.database = f"moved{next(_numbers)}"
        if server is None:
            self.file = path / f"{self.database}.db"
            self.url = sqlite_database(self.file, script)
        else:
            self.url = server.create(self.database, script)

    def run(self, script: str) -> None:
        """Runs a script in one transaction."""
        if self.server is None:
            with closing(sqlite3.connect(self.file, timeout=30)) as connection:
                connection.executescript(f"PRAGMA foreign_keys = ON; BEGIN; {script}; COMMIT;")
        else:
            self.server.execute(f"BEGIN; {script}; COMMIT", self.database)

    def folder(self, patterns: dict[str, str], endpoint: str) -> Folder:
        """Creates a folder with a design, and tables with unique names in the target."""
        folder = designed(self.path / self.database, self.url, patterns)
        model = folder.path / "model.toml"
        renamed = (folder.path / "model.single-table.toml").read_text()
        lines = renamed.splitlines()
        place = lines.index("[[tables]]")
        name = lines[place + 1].partition(" = ")[2].strip('"')
        model.write_text(renamed.replace(f'"{name}"', f'"{name}-{self.database}"'))
        create(folder, endpoint)
        return folder
