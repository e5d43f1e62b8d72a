"""`python -m benchmarks.migration.migrate_test [--all]`: a million rows through `partita migrate
test`.

A SQLite file with two tables is planned, analyzed, modeled and tested with the command line. Said
are the seconds of `test`, and the memory of its own process and of the private server, which holds
the items. With `--all`, every row is loaded; else keys are tested on all rows and a sample is
loaded.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from benchmarks.run import say

MB = 1 << 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_SECONDS = 0.25
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
        said, own, others = _tested(folder)
        seconds = time.monotonic() - start
    say(said)
    say(
        f"{CUSTOMERS + BOOKINGS:,} rows in {seconds:.1f} seconds; at most {own / MB:,.0f} MB in the"
        f" test's own process, {others / MB:,.0f} MB in a server."
    )


def _tested(folder: Path) -> tuple[str, int, int]:
    """Returns the last line of `test`, and the peak memory of its process and of its child."""
    command = [sys.executable, "-m", "partita.cli", "migrate", "test", str(folder), *sys.argv[1:]]
    own = others = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        reading = Thread(target=lambda: lines.extend(process.stdout or []))
        lines: list[str] = []
        reading.start()
        while process.poll() is None:
            own = max(own, _memory(process.pid))
            others = max([others, *map(_memory, _children(process.pid))])
            time.sleep(SAMPLE_SECONDS)
        reading.join()
    return "".join(lines).strip().splitlines()[-2], own, others


def _memory(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def _children(process: int) -> list[int]:
    try:
        names = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    found = [int(name) for name in names]
    return [*found, *(below for one in found for below in _children(one))]


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
