"""Reads how the source's server compares text, and keeps it in the folder as
`collations/*.json`."""

from __future__ import annotations

from partita_migrate.understanding.schema.collation_keys import texts_of
from partita_migrate.understanding.schema.collations import (
    COLLATIONS,
    Collation,
    CollationFolding,
    Pad,
    collation_file,
    register_collation,
)
from partita_migrate.understanding.schema.inventory import MYSQL_FAMILY, Inventory
from partita_migrate.understanding.sources.collation_weights import NotInKeys, weights_of
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent


def ask_collations(
    folder: Folder, source: SourceDatabase, inventory: Inventory, progress: Progress = silent
) -> None:
    """Writes `collations/NAME.json` for every collation in use; files of the same server
    are kept."""
    pads = collations_of(inventory)
    for done, (name, pad) in enumerate(pads.items()):
        progress("Reading collations", done, len(pads))
        collation = _read_collation(folder, name)
        if collation is None or collation.server != inventory.server_version:
            collation = collation_of(source, name, pad, inventory.server_version)
            (folder.path / COLLATIONS).mkdir(exist_ok=True)
            folder.write_json(collation_file(name), collation)
        register_collation(collation)


def collations_of(inventory: Inventory) -> dict[str, Pad]:
    if inventory.dialect not in MYSQL_FAMILY:
        return {}
    columns = [column for table in inventory.tables for column in table.columns]
    pads = {column.collation: column.pad for column in columns if column.collation}
    return dict(sorted(pads.items()))


def collation_of(source: SourceDatabase, name: str, pad: Pad, server: str) -> Collation:
    try:
        weights = weights_of(source, name)
    except NotInKeys as reason:
        return Collation(name=name, server=server, not_in_keys=str(reason))
    texts, runs = texts_of(weights.of, weights.bytes, weights.beyond)
    collation = Collation(name=name, server=server, pad=pad, texts=texts, runs=runs)
    if CollationFolding(collation).unpadded(" ") != " ":
        # With PAD SPACE, trailing blanks are cut from keys, which works only if a blank weighs
        # least.
        return Collation(name=name, server=server, not_in_keys="its blank comes after letters")
    return collation


def _read_collation(folder: Folder, name: str) -> Collation | None:
    return (
        folder.read_json(collation_file(name), Collation)
        if folder.has(collation_file(name))
        else None
    )
