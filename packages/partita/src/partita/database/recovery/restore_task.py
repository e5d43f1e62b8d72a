"""Restores a table: loads a new table with a backup, or with another table's state at a moment."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Final

from msgspec.structs import replace

from partita.database.recovery import recovery_stages
from partita.database.recovery.chunk_manifests import ChunkManifest, get_manifest
from partita.database.recovery.item_loader import ItemLoader
from partita.database.recovery.recovery_context import (
    RecoveryContext,
    Task,
    finish_loading,
    load_past_manifest,
)
from partita.database.recovery.recovery_stages import RecoveryStage
from partita.database.recovery.table_states import table_state
from partita.database.storage.engine import prefix_end
from partita.database.tables import table_layout
from partita.database.tables.bulk_load import BulkLoad
from partita.database.tables.definition.table_schema import RestoreOrigin, Table

LOAD_ITEMS: Final = 512
"""How many items are loaded in one turn of the event loop."""


def restore(work: RecoveryContext, table: Table, origin: RestoreOrigin) -> Task:
    """Loads the table; after a restart it continues behind the last item that the table has."""
    yield None
    recovery_stages.reach_stage(RecoveryStage.RESTORE_BEGUN)
    manifest, until = yield from _source(work, origin)
    prefix = table_layout.items_prefix(table.number)
    last = next(work.snapshot.range(prefix, prefix_end(prefix), reverse=True), None)
    after = None if last is None else last[0][len(prefix) :]
    loading = BulkLoad(work.snapshot, table, is_resumed=True)
    loader = ItemLoader(work, table)
    try:
        for items in table_state(work.archive, manifest, origin.table_id, until, after=after):
            for at in range(0, len(items), LOAD_ITEMS):
                pairs = loading.pairs(items[at : at + LOAD_ITEMS])
                yield from loader.put(pairs, loading.figures())
                recovery_stages.reach_stage(RecoveryStage.RESTORE_ITEMS_PUT)
            if not items:
                yield None
        write_batch = yield from loader.finish(loading.figures())
    finally:
        loader.stop()
    recovery_stages.reach_stage(RecoveryStage.RESTORE_LOADED)
    finish_loading(work, write_batch, table, origin=replace(origin, is_in_progress=False))


def _source(
    work: RecoveryContext, origin: RestoreOrigin
) -> Generator[Future[Any] | None, Any, tuple[ChunkManifest, int | None]]:
    if origin.manifest is not None:
        return get_manifest(work.archive, origin.manifest), None
    return (yield from load_past_manifest(work, origin.table_id, origin.stamp or 0))
