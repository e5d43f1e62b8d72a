"""The collations of a source's texts, as its server compares: files in the folder."""

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
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.collation_weights import NotInKeys, weights_of
from partita_migrate.understanding.sources.source_connection import SourceDatabase
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent


def ask_collations(
    folder: Folder, source: SourceDatabase, inventory: Inventory, progress: Progress = silent
) -> None:
    """Writes `collations/NAME.json` for all that columns have; those of this server stay."""
    pads = collations_of(inventory)
    for done, (name, pad) in enumerate(pads.items()):
        progress("Asking for collations", done, len(pads))
        known = _known(folder, name)
        if known is None or known.server != inventory.server_version:
            known = collation_of(source, name, pad, inventory.server_version)
            (folder.path / COLLATIONS).mkdir(exist_ok=True)
            folder.write_json(collation_file(name), known)
        register_collation(known)


def collations_of(inventory: Inventory) -> dict[str, Pad]:
    if inventory.dialect not in ("mysql", "mariadb"):
        return {}
    columns = [column for table in inventory.tables for column in table.columns]
    found = {column.collation: column.pad for column in columns if column.collation}
    return dict(sorted(found.items()))


def collation_of(source: SourceDatabase, name: str, pad: Pad, server: str) -> Collation:
    try:
        weights = weights_of(source, name)
    except NotInKeys as reason:
        return Collation(name=name, server=server, not_in_keys=str(reason))
    texts, runs = texts_of(weights.of, weights.bytes, weights.beyond)
    found = Collation(name=name, server=server, pad=pad, texts=texts, runs=runs)
    if CollationFolding(found).unpadded(" ") != " ":
        # Keys could not end where PAD SPACE ends.
        return Collation(name=name, server=server, not_in_keys="its blank comes after letters")
    return found


def _known(folder: Folder, name: str) -> Collation | None:
    return (
        folder.read_json(collation_file(name), Collation)
        if folder.has(collation_file(name))
        else None
    )
