"""One move: its design, state store, source, log and target, opened together."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from partita.errors import PartitaError
from partita_migrate.model.design import Design
from partita_migrate.model.model_files import CHOSEN, read_design
from partita_migrate.model.proofs import fingerprint
from partita_migrate.moving.loading.load_report import LANES
from partita_migrate.moving.loading.row_filters import parts_of
from partita_migrate.moving.logs import log_of
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.logs.source_changes import SourceLog
from partita_migrate.moving.processes.move_lock import locked
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.target_access.target_items import TargetItems
from partita_migrate.row_store.row_store import primary_keys
from partita_migrate.row_store.state_store import StateStore, StoredFacts, state_path
from partita_migrate.understanding.schema.inventory import Inventory, read_inventory
from partita_migrate.workspace.migration_folder import Folder

BEGUN, LOADED, POSITION_FACT, RESUME = "begun", "loaded", "position", "resume"
AGENT = "agent"
"""The names of facts in the state store."""


class MoveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a load was started with; all later commands use them."""

    model: str
    fingerprint: str
    source: str
    endpoint: str
    is_followed: bool
    where: dict[str, str] = {}
    """By table, the condition on the rows that are moved; tables without one are moved whole."""
    files: str = ""
    """Where items are written as import files instead of into tables; empty for tables."""


@dataclass
class Move:
    """An open move. Only one process has it at a time; the lock of its folder sees to that."""

    folder: Folder
    inventory: Inventory
    design: Design
    origin: MoveSource
    state: StateStore
    log: SourceLog
    target: TargetClient
    begun: MoveOptions
    lock: int
    """The file descriptor of the folder's lock; processes that work for this one inherit it."""

    def __post_init__(self) -> None:
        parts = parts_of(self.inventory, self.begun.where)
        self.items = TargetItems(self.design, self.state, primary_keys(self.inventory), parts)
        self.entities = self.items.entities

    @property
    def position(self) -> int:
        """The position in the source's log up to which the target is complete."""
        return self.state.fact(POSITION_FACT, int) or 0

    @property
    def resume(self) -> str:
        """The place where reading of the log continues, in the source.s form (a GTID, an LSN)."""
        return self.state.fact(RESUME, str) or ""


@contextmanager
def open_move(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str,
    name: str | None = None,
    is_followed: bool | None = None,
    where: Mapping[str, str] | None = None,
    files: str = "",
    write_units: float | None = None,
    needs_target: bool = True,
    ask: Callable[[str], str] | None = None,
) -> Iterator[Move]:
    """Opens the move of a folder for this process alone.

    `name`, `is_followed`, `where` and `files` are options of the `load` that begins the move. With
    `needs_target`, the target has to answer before anything is done.
    """
    inventory = read_inventory(folder)
    with ExitStack() as stack:
        lock = stack.enter_context(locked(folder))
        if name is None and not state_path(folder).is_file():
            raise PartitaError(f"{folder.path} has not been loaded; run `partita migrate load`.")
        design = read_design(folder, name or _model(folder))
        state = StateStore(state_path(folder), inventory, design)
        stack.callback(state.close)
        origin = MoveSource(folder, inventory, ask)
        begun = state.fact(BEGUN, MoveOptions)
        if begun is None:
            will_follow = is_followed if is_followed is not None else origin.family != "sqlite"
            begun = MoveOptions(
                model=name or CHOSEN,
                fingerprint=fingerprint(design),
                source=str(origin.address),
                endpoint=endpoint or "",
                is_followed=will_follow,
                where=dict(where or {}),
                files=files,
            )
        _check_same(folder, begun, design, origin, endpoint)
        if is_followed is False and begun.is_followed and state.fact(LANES, list) is None:
            # Nothing has been read yet. A user whose source has no usable log may still start over
            # without following.
            with suppress(PartitaError):  # The slot or the triggers may never have been made.
                log_of(origin, is_followed=True).remove()
            begun = replace(begun, is_followed=False)
            with state.transaction():
                state.set_fact(BEGUN, begun)
        if where and dict(where) != begun.where:
            raise PartitaError(
                f"The load was begun with other conditions ({begun.where or 'none'}). Remove"
                f" {state_path(folder).parent} and empty the tables to start over."
            )
        parts_of(inventory, begun.where)
        target = TargetClient(endpoint, region, write_units, agent_of(state))
        stack.callback(target.close)
        log = log_of(origin, is_followed=begun.is_followed)
        move = Move(folder, inventory, design, origin, state, log, target, begun, lock)
        if state.fact(BEGUN, MoveOptions) is None:
            if not files:
                target.check_tables(design.tables, must_be_empty=True)
            with state.transaction():
                state.set_fact(BEGUN, begun)
        elif needs_target and not (begun.files and name):
            target.check_tables(design.tables, must_be_empty=False)
        yield move


def agent_of(state: StateStore) -> str:
    """Returns the secret user agent of this move, by which the write block of the target lets it
    through."""
    agent = state.fact(AGENT, str)
    if agent is None:
        agent = f"partita-migrate/{secrets.token_hex(12)}"
        with state.transaction():
            state.set_fact(AGENT, agent)
    return agent


def _model(folder: Folder) -> str:
    begun = StoredFacts(state_path(folder)).get(BEGUN, MoveOptions)
    if begun is None:
        raise PartitaError(f"{folder.path} has not been loaded; run `partita migrate load`.")
    return begun.model


def _check_same(
    folder: Folder, begun: MoveOptions, design: Design, origin: MoveSource, endpoint: str | None
) -> None:
    again = f"Remove {state_path(folder).parent} and empty the tables to start over."
    if begun.fingerprint != fingerprint(design):
        raise PartitaError(f"{begun.model} has changed since the load was begun with it. {again}")
    if begun.source != str(origin.address):
        raise PartitaError(f"This load reads {begun.source}, not {origin.address}. {again}")
    if begun.endpoint != (endpoint or ""):
        raise PartitaError(f"This load writes to {begun.endpoint}, not {endpoint}. {again}")
