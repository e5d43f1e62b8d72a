"""One move: the design, the state store, the source's log and the target, opened together."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from partita.database.item.sizes import item_size
from partita.database.item.values import Item
from partita.errors import PartitaError
from partita.limits import ITEM_BYTES_MAX, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from partita.migrate.folder import Folder
from partita.migrate.model.design import Design, SecondaryIndex, TableDesign
from partita.migrate.model.files import CHOSEN, read_design
from partita.migrate.model.making import ItemMaker
from partita.migrate.model.proofs import fingerprint
from partita.migrate.moving.logs import log_of
from partita.migrate.moving.logs.changes import ChangeLog
from partita.migrate.moving.logs.origin import Origin
from partita.migrate.moving.positions import OWN
from partita.migrate.moving.state import StateStore, locked, primary_keys, state_path
from partita.migrate.moving.target import Target
from partita.migrate.understanding.schema.inventory import Inventory, read_inventory

BEGUN, LOADED, POSITION_FACT, RESUME = "begun", "loaded", "position", "resume"
AGENT = "agent"
"""Facts of the state store."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What a load was begun with, and all later commands go on with."""

    model: str
    fingerprint: str
    source: str
    endpoint: str
    is_followed: bool


@dataclass
class Move:
    folder: Folder
    inventory: Inventory
    design: Design
    origin: Origin
    state: StateStore
    log: ChangeLog
    target: Target

    def __post_init__(self) -> None:
        self.maker = ItemMaker(self.state, primary_keys(self.inventory))
        self.homes = [(table, entity) for table, entity in self.design.entities()]

    @property
    def position(self) -> int:
        return self.state.fact(POSITION_FACT, int) or 0

    @property
    def resume(self) -> str:
        return self.state.fact(RESUME, str) or ""


@contextmanager
def open_move(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str,
    name: str | None = None,
    is_followed: bool | None = None,
    write_units: float | None = None,
    ask: Callable[[str], str] | None = None,
) -> Iterator[Move]:
    """For this process alone. `name` and `is_followed` are given by the load that begins it."""
    inventory = read_inventory(folder)
    with ExitStack() as stack:
        stack.enter_context(locked(folder))
        if name is None and not state_path(folder).is_file():
            raise PartitaError(f"{folder.path} has not been loaded; run `partita migrate load`.")
        design = read_design(folder, name or _model(folder))
        state = StateStore(state_path(folder), inventory, design)
        stack.callback(state.close)
        origin = Origin(folder, inventory, ask)
        begun = state.fact(BEGUN, Begun)
        if begun is None:
            followed = is_followed if is_followed is not None else origin.family != "sqlite"
            begun = Begun(
                model=name or CHOSEN,
                fingerprint=fingerprint(design),
                source=str(origin.address),
                endpoint=endpoint or "",
                is_followed=followed,
            )
        _check_same(folder, begun, design, origin, endpoint)
        target = Target(endpoint, region, write_units, agent_of(state))
        stack.callback(target.close)
        log = log_of(origin, is_followed=begun.is_followed)
        move = Move(folder, inventory, design, origin, state, log, target)
        if state.fact(BEGUN, Begun) is None:
            target.check_tables(design.tables, must_be_empty=True)
            with state.transaction():
                state.set_fact(BEGUN, begun)
        else:
            target.check_tables(design.tables, must_be_empty=False)
        yield move


def agent_of(state: StateStore) -> str:
    """What this move calls itself towards the target, and nobody else does."""
    known = state.fact(AGENT, str)
    if known is None:
        known = f"partita-migrate/{secrets.token_hex(12)}"
        with state.transaction():
            state.set_fact(AGENT, known)
    return known


def _model(folder: Folder) -> str:
    import sqlite3

    connection = sqlite3.connect(state_path(folder))
    try:
        found = connection.execute("SELECT value FROM facts WHERE name = ?", (BEGUN,)).fetchone()
    except sqlite3.Error:
        found = None
    finally:
        connection.close()
    if found is None:
        raise PartitaError(f"{folder.path} has not been loaded; run `partita migrate load`.")
    return msgspec.json.decode(found[0], type=Begun).model


def _check_same(
    folder: Folder, begun: Begun, design: Design, origin: Origin, endpoint: str | None
) -> None:
    again = f"Remove {state_path(folder).parent} and empty the tables to begin anew."
    if begun.fingerprint != fingerprint(design):
        raise PartitaError(f"{begun.model} has changed since the load was begun with it. {again}")
    if begun.source != str(origin.address):
        raise PartitaError(f"The load was begun from {begun.source}, not {origin.address}. {again}")
    if begun.endpoint != (endpoint or ""):
        raise PartitaError(f"The load was begun to {begun.endpoint}, not {endpoint}. {again}")


# Items.


def refusal_of(table: TableDesign, item: Item) -> str:
    """Why the service would not take an item; empty when it would."""
    homes: list[TableDesign | SecondaryIndex] = [table, *table.indexes]
    for home in homes:
        for key, most in zip(
            home.keys, (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX), strict=False
        ):
            value = item.get(key.name)
            if value is None:
                if home is table:
                    return f"it has no {key.name}, which is a key of {table.name}"
            elif key.type not in value:
                return f"its {key.name} is not of type {key.type}, which {home.name} wants"
            elif value[key.type] == "":
                return f"its {key.name} is empty, and is a key of {home.name}"
            elif len(str(value[key.type]).encode()) > most:
                return f"its {key.name} is longer than a key of {home.name} may be ({most} bytes)"
    if (size := item_size(item)) > ITEM_BYTES_MAX:
        return f"it has {size:,} bytes, more than an item may have"
    return ""


_encode = msgspec.json.Encoder(order="sorted").encode


def key_hash(table: TableDesign, item: Item) -> bytes:
    content = [table.name, *(item[key.name] for key in table.keys)]
    return hashlib.blake2b(_encode(content), digest_size=16).digest()


def item_digest(item: Item) -> bytes:
    """Of what an item says, without what the move keeps on it; sets have no order."""
    plain = {name: _unordered(value) for name, value in item.items() if name not in OWN}
    return hashlib.blake2b(_encode(plain), digest_size=16).digest()


def _unordered(value: Any) -> Any:
    ((kind, held),) = value.items()
    if kind in ("SS", "NS", "BS"):
        return {kind: sorted(held)}
    if kind == "L":
        return {kind: [_unordered(member) for member in held]}
    if kind == "M":
        return {kind: {name: _unordered(member) for name, member in held.items()}}
    return value
