"""`python -m benchmarks.migrate_test`: a million rows through `partita migrate test`.

A SQLite file with two tables is planned, analyzed, modeled and tested with the command line. Said
are the seconds of `test`, and the memory of its largest process.
"""

from __future__ import annotations

import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.run import say

CUSTOMERS = 100_000
BOOKINGS = 900_000
SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE booking (
    id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id),
    booked_at DATETIME NOT NULL, amount DECIMAL(10, 2) NOT NULL, state TEXT NOT NULL, note TEXT
);
"""
PATTERNS = {
    "customer": "SELECT * FROM customer WHERE id = ?",
    "by mail": "SELECT id FROM customer WHERE lower(email) = ?",
    "bookings": "SELECT id, booked_at, amount FROM booking WHERE customer_id = ?"
    " ORDER BY booked_at DESC LIMIT 10",
    "booking": "SELECT * FROM booking WHERE id = ?",
    "open or large": "SELECT id FROM booking WHERE customer_id = ?"
    " AND (state = 'open' OR amount > ?)",
    "book": "INSERT INTO booking (id, customer_id, booked_at, amount, state)"
    " VALUES (?, ?, ?, ?, ?)",
    "pay": "UPDATE booking SET state = 'paid' WHERE id = ?",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as space:
        folder = _folder(Path(space))
        for stage in ("plan", "analyze", "model"):
            _run(stage, folder)
        start = time.monotonic()
        said = _run("test", folder)
        seconds = time.monotonic() - start
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    say(said.strip().splitlines()[-2])
    say(f"{CUSTOMERS + BOOKINGS:,} rows in {seconds:.1f} seconds, at most {memory:,.0f} MB.")


def _folder(path: Path) -> Path:
    database = sqlite3.connect(path / "source.db")
    database.executescript(f"PRAGMA synchronous = OFF;{SCHEMA}")
    database.executemany(
        "INSERT INTO customer VALUES (?, ?, ?)",
        ((n, f"Mail{n}@x.org", f"Name {n}") for n in range(1, CUSTOMERS + 1)),
    )
    database.executemany("INSERT INTO booking VALUES (?, ?, ?, ?, ?, ?)", _bookings())
    database.commit()
    database.close()
    folder = path / "folder"
    folder.mkdir()
    (folder / "migration.toml").write_text(f'[source]\nurl = "sqlite:///{path / "source.db"}"\n')
    (folder / "patterns.toml").write_text(
        "\n".join(
            f'[[pattern]]\nname = "{name}"\nsql = """{sql}"""\nrate = "20/s"\n'
            for name, sql in PATTERNS.items()
        )
    )
    return folder


def _bookings() -> Iterator[tuple[object, ...]]:
    chance = random.Random(1)
    for n in range(1, BOOKINGS + 1):
        moment = f"2026-{1 + n % 12:02}-{1 + n % 28:02} {n % 24:02}:{n % 60:02}:00"
        state = ("open", "paid", "void")[n % 3]
        note = None if n % 4 else f"note {n}"
        amount = round(chance.random() * 1000, 2)
        yield n, chance.randint(1, CUSTOMERS), moment, amount, state, note


def _run(stage: str, folder: Path) -> str:
    command = [sys.executable, "-m", "partita.cli", "migrate", stage, str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
