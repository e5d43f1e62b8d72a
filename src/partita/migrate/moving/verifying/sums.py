"""Both sides as sums: of the digests of their items, by a hash of their keys.

Two sides whose sums are the same have the same items. Where a sum differs, and only there, items
are looked at one by one. So a side of any size takes as much memory as it has sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct, field

from partita.database.item.values import Item
from partita.migrate.folder import Folder
from partita.migrate.model.design import TableDesign
from partita.migrate.model.files import read_design
from partita.migrate.moving.items import Items, item_digest
from partita.migrate.moving.parts import parts_of
from partita.migrate.moving.positions import DELETED
from partita.migrate.moving.state import StateStore, state_path
from partita.migrate.moving.target import Target
from partita.migrate.moving.workers import Handler
from partita.migrate.understanding.schema.inventory import read_inventory

SUMS = 1 << 16
_MODULUS = 1 << 128


class Setup(Struct):
    folder: str
    model: str
    where: dict[str, str]
    endpoint: str | None
    region: str


class Task(Struct):
    """Some rows of the state store, or a segment of a table of the target."""

    table: str
    after: int = 0
    until: int = 0
    segment: int = 0
    segments: int = 0


class Sums(Struct):
    sums: dict[int, bytes] = field(default_factory=dict)
    items: int = 0
    tombstones: int = 0
    rows: int = 0
    is_made: bool = False


def bucket(table: TableDesign, item: Item) -> int:
    """By the key alone, so that both sides put an item at the same place."""
    text = table.name
    for key in table.keys:
        for held in item[key.name].values():
            text += "\0" + held
    return crc32(text.encode()) % SUMS


def made(items: Items, state: StateStore, task: Task) -> Iterator[tuple[TableDesign, Item, int]]:
    """What rows make, with the number of the row."""
    numbers = items.numbers.get(task.table, [])
    for row_number, row in state.rows(task.table, task.after, task.until):
        for number in numbers:
            item = items.made(number, row)
            if item is not None:
                yield items.homes[number][0], item, row_number


def made_sums(items: Items, state: StateStore, task: Task) -> Sums:
    found = _summed((table, item) for table, item, _ in made(items, state, task))
    found.is_made = True
    found.rows = task.until - task.after
    return found


def scanned_sums(target: Target, table: TableDesign, task: Task) -> Sums:
    tombstones = 0

    def live() -> Iterator[tuple[TableDesign, Item]]:
        nonlocal tombstones
        for page in target.pages(table.name, task.segment, task.segments):
            for item in page:
                if DELETED in item:
                    tombstones += 1
                else:
                    yield table, item

    found = _summed(live())
    found.tombstones = tombstones
    return found


def _summed(pairs: Iterable[tuple[TableDesign, Item]]) -> Sums:
    sums: dict[int, int] = {}
    count = 0
    for table, item in pairs:
        count += 1
        place = bucket(table, item)
        sums[place] = sums.get(place, 0) + int.from_bytes(item_digest(item))
    kept = {place: (value % _MODULUS).to_bytes(16) for place, value in sums.items()}
    return Sums(kept, count)


class Total:
    """The sums of one side."""

    def __init__(self) -> None:
        self.sums: dict[int, int] = {}
        self.items = 0
        self.tombstones = 0

    def add(self, found: Sums) -> None:
        for place, value in found.sums.items():
            now = self.sums.get(place, 0) + int.from_bytes(value)
            self.sums[place] = now % _MODULUS
        self.items += found.items
        self.tombstones += found.tombstones

    def differing(self, other: Total) -> set[int]:
        places = self.sums.keys() | other.sums.keys()
        return {place for place in places if self.sums.get(place, 0) != other.sums.get(place, 0)}


def worker(content: bytes) -> Handler:
    """In a process of its own."""
    setup = msgspec.msgpack.decode(content, type=Setup)
    folder = Folder.open(Path(setup.folder))
    inventory, design = read_inventory(folder), read_design(folder, setup.model)
    state = StateStore(state_path(folder), inventory, design, is_read_only=True)
    items = Items(design, state, parts_of(inventory, setup.where))
    target = Target(setup.endpoint, setup.region)
    tables = {table.name: table for table in design.tables}

    def handle(content: bytes) -> Sums:
        task = msgspec.msgpack.decode(content, type=Task)
        if task.segments:
            return scanned_sums(target, tables[task.table], task)
        return made_sums(items, state, task)

    return handle
