"""Commits on a recorded disk, and what it may hold after a power failure at any moment.

Run with `recorded_disk.c` in front of the system. Every round is a load on an engine that is cut
off at some moment of its record; the next one begins with what was left.

Of what was written since the last sync of its file, any sectors may be on disk, each as it was at
any time since. What a sync that failed should have brought there stays open even after another
one that did not, until its page is written again: Linux takes such pages for clean.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import NamedTuple

from partita.database.storage.data_folder import embedded_engine, write_ahead_log
from partita.database.storage.data_folder.embedded_engine import (
    LOG_FILES,
    EmbeddedEngine,
    open_for_reading,
)
from partita.database.storage.data_folder.lmdb_tree import DATA_FILE
from partita.errors import StorageError

SECTOR, PAGE = 512, 4096
ROUNDS = 20
STATES_PER_ROUND = 6
WORDS = "-"
"""Instead of a file: when a commit began and how it ended."""
EVERYTHING = (b"", b"\xff" * 8)

Changes = dict[bytes, bytes | None]


class Event(NamedTuple):
    what: str
    name: str
    place: int
    content: bytes


class Left(NamedTuple):
    """By a power failure."""

    state: dict[bytes, bytes]
    files: dict[str, bytes]


class RecordedFile:
    """What the system shows of a file, and what the disk may have of it."""

    def __init__(self, content: bytes = b"") -> None:
        self._shown = bytearray(content)
        self._disk = bytearray(content)
        self._sizes = [len(content)]
        self._versions: dict[int, list[bytes]] = {}
        self._unsynced: set[int] = set()

    def see(self, event: Event) -> None:
        if event.what in ("write", "durable"):
            pages = self._write(event.place, event.content)
            self._unsynced |= pages
            if event.what == "durable":
                self._sync(pages)
        elif event.what == "size":
            del self._shown[event.place :]
            self._sizes.append(event.place)
        elif event.what == "sync":
            self._sync(self._unsynced)
        else:
            self._unsynced = set()

    def after_power_failure(self, random: Random) -> bytes:
        size = random.choice(self._sizes)
        content = self._disk[:size].ljust(size, b"\0")
        share = random.choice((0, 0.1, 0.5, 0.9, 1))
        for sector, versions in self._versions.items():
            if sector * SECTOR < size and random.random() < share:
                version = random.choice((versions[-1], random.choice(versions)))
                content[sector * SECTOR : sector * SECTOR + len(version)] = version
        return bytes(content[:size])

    def _write(self, place: int, content: bytes) -> set[int]:
        end = place + len(content)
        if end > len(self._shown):
            self._shown.extend(bytes(end - len(self._shown)))
            self._sizes.append(end)
        self._shown[place:end] = content
        for sector in range(place // SECTOR, -(-end // SECTOR)):
            version = bytes(self._shown[sector * SECTOR : (sector + 1) * SECTOR])
            self._versions.setdefault(sector, []).append(version)
        return set(range(place // PAGE, -(-end // PAGE)))

    def _sync(self, pages: set[int]) -> None:
        self._disk.extend(bytes(max(0, len(self._shown) - len(self._disk))))
        for page in pages:
            shown = self._shown[page * PAGE : (page + 1) * PAGE]
            self._disk[page * PAGE : page * PAGE + len(shown)] = shown
            for sector in range(page * PAGE // SECTOR, (page + 1) * PAGE // SECTOR):
                self._versions.pop(sector, None)
        self._unsynced = self._unsynced - pages
        self._sizes = [len(self._shown)]


def events(record: Path) -> Iterator[Event]:
    with record.open("rb") as file:
        while line := file.readline():
            what, name, place, count = line.decode().split()
            yield Event(what, name, int(place), file.read(int(count)))


def random_changes(random: Random) -> Changes:
    keys = [
        b"%03d" % random.randrange(200) + b"k" * random.choice((0, 0, 0, 600))
        for _ in range(random.randrange(1, 7))
    ]
    sizes = (0, 20, 20, 200, 3000)
    return {
        key: None if random.random() < 0.3 else random.randbytes(random.choice(sizes))
        for key in keys
    }


def apply(state: dict[bytes, bytes], changes: Changes) -> dict[bytes, bytes]:
    merged = {**state, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def run_relaxed_load(folder: Path, random: Random) -> list[Changes]:
    """Nothing of it is promised before a durable engine has it."""
    commits = [random_changes(random) for _ in range(random.choice((0, 0, 9)))]
    if commits:
        engine = EmbeddedEngine(folder, durable=False, checkpoint_bytes=1000)
        for changes in commits:
            engine.commit(changes)
            engine.refresh()
        engine.close()
    return commits


def run_load(folder: Path, random: Random) -> list[Changes]:
    """Commits, some of which fail."""
    disk = ctypes.CDLL(None)
    commits = run_relaxed_load(folder, random)
    engine = EmbeddedEngine(folder, checkpoint_bytes=random.choice((300, 3000, 10_000)))
    for number in range(len(commits)):
        disk.tell(b"acknowledged", number)
    disk.tell(b"opened", 0)
    for number in range(len(commits), len(commits) + random.choice((3, 10, 30))):
        commits.append(random_changes(random))
        if random.random() < 0.1:
            disk.fail_soon(random.randrange(20), random.randrange(1, 5))
        disk.tell(b"begun", number)
        try:
            engine.commit(commits[-1])
            disk.tell(b"acknowledged", number)
        except StorageError:
            disk.tell(b"refused", number)
        engine.refresh()
    engine.close()
    disk.fail_soon(0, 0)
    return commits


def found_in(folder: Path) -> dict[bytes, bytes]:
    """What `partita check` reads there, and the next server too."""
    with open_for_reading(folder) as snapshot:
        found = dict(snapshot.range(*EVERYTHING))
    engine = EmbeddedEngine(folder)
    assert dict(engine.snapshot().range(*EVERYTHING)) == found
    engine.close()
    return found


class Machine:
    """The disk at one moment of a record, and what it must have then."""

    def __init__(self, left: Left) -> None:
        self._state = left.state
        self._files = {name: RecordedFile(content) for name, content in left.files.items()}
        self._in_doubt: list[Changes] = []

    def see(self, event: Event, commits: list[Changes]) -> None:
        if event.what == "begun":
            self._in_doubt.append(commits[event.place])
        elif event.what == "acknowledged":
            self._state = apply(self._state, commits[event.place])
            self._in_doubt.clear()
        elif event.name != WORDS:
            self._files.setdefault(event.name, RecordedFile()).see(event)

    def fail(self, folder: Path, random: Random) -> Left:
        """What may be left behind; it must be what was acknowledged, or one commit more."""
        files = {name: file.after_power_failure(random) for name, file in self._files.items()}
        lay_out(folder, files)
        found = found_in(folder)
        possible = [self._state, *(apply(self._state, changes) for changes in self._in_doubt)]
        assert found in possible, f"{self._state.items() ^ found.items()}"
        return Left(found, files)


def lay_out(folder: Path, files: dict[str, bytes]) -> None:
    rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def run_round(before: Left, random: Random) -> Left:
    folder = Path(os.environ["PARTITA_RECORDED_DISK"])
    record = Path(os.environ["PARTITA_RECORD"])
    lay_out(folder, before.files)
    record.write_bytes(b"")
    commits = run_load(folder, random)
    seen = list(events(record))
    opened = next(place for place, event in enumerate(seen) if event.what == "opened")
    moments = [random_moment(seen, opened, random) for _ in range(STATES_PER_ROUND)]
    machine = Machine(before)
    left = []
    for place, event in enumerate(seen):
        machine.see(event, commits)
        left += [machine.fail(folder, random) for _ in range(moments.count(place))]
    return random.choice(left)


def random_moment(seen: list[Event], opened: int, random: Random) -> int:
    """The tree's writes are many more; each file has its share."""
    name = random.choice([*LOG_FILES, DATA_FILE])
    places = [place for place in range(opened, len(seen)) if seen[place].name in (name, WORDS)]
    return random.choice(places)


def main(seed: int) -> None:
    write_ahead_log.PREALLOCATED_BYTES, write_ahead_log.CLEARED_BYTES_MAX = PAGE, 2 * PAGE
    embedded_engine.PUTS_MIN, embedded_engine.PUTS_PER_CHANGE = 1, 2
    random = Random(seed)
    left = Left({}, {})
    for _ in range(ROUNDS):
        left = run_round(left, random)


if __name__ == "__main__":
    main(int(sys.argv[1]))
