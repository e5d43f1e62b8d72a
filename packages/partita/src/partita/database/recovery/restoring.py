"""Restores a table: loads a new table with a backup, or with another table's state at a moment."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery import stages
from partita.database.recovery.loading import Loader
from partita.database.recovery.manifests import Manifest, get_manifest
from partita.database.recovery.stages import Stage
from partita.database.recovery.states import state
from partita.database.recovery.tasks import Task, Workplace, finish_loading, past
from partita.database.storage.engine import prefix_end
from partita.database.tables import layout
from partita.database.tables.bulk_load import Loading
from partita.database.tables.schema import Origin, Table

LOAD_ITEMS: Final = 512
"""How many items are loaded in one turn of the event loop."""


def restore(work: Workplace, table: Table, origin: Origin) -> Task:
    """Loads the table; after a restart it continues behind the last item that the table has."""
    yield None
    stages.reached(Stage.RESTORE_BEGUN)
    manifest, until = yield from _source(work, origin)
    prefix = layout.items_prefix(table.number)
    last = next(work.snapshot.range(prefix, prefix_end(prefix), reverse=True), None)
    after = None if last is None else last[0][len(prefix) :]
    loading = Loading(work.snapshot, table, is_resumed=True)
    loader = Loader(work, table)
    try:
        for items in state(work.archive, manifest, origin.table_id, until, after=after):
            for at in range(0, len(items), LOAD_ITEMS):
                pairs = loading.pairs(items[at : at + LOAD_ITEMS])
                yield from loader.put(pairs, loading.figures())
                stages.reached(Stage.RESTORE_ITEMS_PUT)
            if not items:
                yield None
        write_batch = yield from loader.finish(loading.figures())
    finally:
        loader.stop()
    stages.reached(Stage.RESTORE_LOADED)
    finish_loading(work, write_batch, table, origin=replace(origin, is_in_progress=False))


def _source(
    work: Workplace, origin: Origin
) -> Generator[Future[Any] | None, Any, tuple[Manifest, int | None]]:
    if origin.manifest is not None:
        return get_manifest(work.archive, origin.manifest), None
    return (yield from past(work, origin.table_id, origin.stamp or 0))
