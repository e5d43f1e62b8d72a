"""Opens the design, the state store (read-only) and the target in a process that makes items."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from partita_migrate.model.model_files import read_design
from partita_migrate.moving.loading.row_filters import parts_of
from partita_migrate.moving.move import Move
from partita_migrate.moving.target_access.target_client import TargetClient
from partita_migrate.moving.target_access.target_items import TargetItems
from partita_migrate.row_store.row_store import primary_keys
from partita_migrate.row_store.state_store import StateStore, state_path
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.workspace.migration_folder import Folder


class WorkerSetup(Struct):
    """Sent to a worker process when it starts."""

    folder: str
    model: str
    where: dict[str, str]
    endpoint: str | None
    region: str
    write_units: float | None
    position: int

    def opened(self) -> tuple[TargetItems, StateStore, TargetClient]:
        """Opens items, state store and target inside the worker process."""
        folder = Folder.open(Path(self.folder))
        inventory, design = read_inventory(folder), read_design(folder, self.model)
        state = StateStore(state_path(folder), inventory, design, is_read_only=True)
        parts = parts_of(inventory, self.where)
        items = TargetItems(design, state, primary_keys(inventory), parts)
        return items, state, TargetClient(self.endpoint, self.region, self.write_units)


def worker_setup(move: Move, count: int) -> WorkerSetup:
    """Returns the setup of one of `count` processes, which share the write units."""
    units = move.target.pace.units_max
    return WorkerSetup(
        folder=str(move.folder.path.resolve()),
        model=move.begun.model,
        where=move.begun.where,
        endpoint=move.begun.endpoint or None,
        region=move.target.region,
        write_units=units / count if units is not None else None,
        position=move.position,
    )
