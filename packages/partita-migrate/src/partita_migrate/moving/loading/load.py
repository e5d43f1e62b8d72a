"""Stage `load`: reads every row once into the state store, then writes their items to the
target."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from partita.errors import PartitaError
from partita_migrate.model.model_files import CHOSEN, read_design
from partita_migrate.moving.loading.import_files import ImportFiles
from partita_migrate.moving.loading.item_writer import ItemLoading
from partita_migrate.moving.loading.lane_reader import ON_SOURCE, RowStaging, count_rows
from partita_migrate.moving.loading.load_report import (
    LOAD_JSON,
    READ_UNTIL,
    REPORT,
    STAGED,
    LoadReport,
    ReadLane,
    SourceCost,
    TableLoad,
)
from partita_migrate.moving.loading.rejects import replay, write_rejects
from partita_migrate.moving.loading.row_filters import parts_of
from partita_migrate.moving.logs.move_source import MoveSource
from partita_migrate.moving.move import LOADED, Move, open_move
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

__all__ = ["READ_UNTIL", "LoadReport", "TableLoad", "load"]


def load(
    folder: Folder,
    endpoint: str | None,
    *,
    name: str = CHOSEN,
    region: str = "us-east-1",
    is_followed: bool | None = None,
    where: Mapping[str, str] | None = None,
    files: str = "",
    is_replaying: bool = False,
    write_units: float | None = None,
    is_dry_run: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> LoadReport:
    """Loads all rows, or goes on with a load that was stopped.

    `where` has a condition by table on the rows to move. `files` is where to write files for
    ImportTable instead of items into tables. `is_replaying` tries rejected rows again.
    """
    began = time.monotonic()
    if is_dry_run:
        return _plan(folder, endpoint, name, where or {}, files, ask)
    with open_move(
        folder,
        endpoint,
        region=region,
        name=name,
        is_followed=is_followed,
        where=where,
        files=files,
        write_units=write_units,
        ask=ask,
    ) as move:
        if move.state.fact(LOADED, bool) is None:
            _load(move, name, region, progress)
        if is_replaying:
            if move.begun.files:
                raise PartitaError(
                    "Rows that were loaded into files cannot be replayed; start over with a new"
                    " load."
                )
            replay(move)
        return _write_report(move, name, time.monotonic() - began)


def _load(move: Move, name: str, region: str, progress: Progress) -> None:
    if move.state.fact(STAGED, bool) is None:
        RowStaging(move, progress).run()
    if not move.begun.files:
        ItemLoading(move, progress).run()
        return
    files = ImportFiles(move.folder, move.begun.files, region)
    files.write_requests(move.folder, name)
    ItemLoading(move, progress, files).run()


def _plan(
    folder: Folder,
    endpoint: str | None,
    name: str,
    where: Mapping[str, str],
    files: str,
    ask: Callable[[str], str] | None,
) -> LoadReport:
    """Returns the report of a dry run, which only counts the source's rows."""
    read_design(folder, name)
    inventory = read_inventory(folder)
    parts_of(inventory, where)
    origin = MoveSource(folder, inventory, ask)
    with origin.connect() as source:
        tables = [
            TableLoad(
                table=table.name,
                expected=count_rows(source, table, ReadLane(number=0, table=table.name)),
            )
            for table in origin.tables
        ]
    return LoadReport(
        source=str(origin.address),
        endpoint=endpoint or "",
        model=name,
        is_dry_run=True,
        where=dict(where),
        files=files,
        tables=tables,
    )


def _write_report(move: Move, name: str, seconds: float) -> LoadReport:
    """Writes `load.json` and the rejects, and returns the report."""
    report = LoadReport(
        source=str(move.origin.address),
        endpoint=move.target.endpoint,
        model=name,
        is_followed=bool(move.resume or move.position),
        seconds=round(seconds, 3),
        position=move.position,
        where=move.begun.where,
        files=move.begun.files,
        rejects=write_rejects(move),
        tables=move.state.fact(REPORT, list[TableLoad]) or [],
        on_source=move.state.fact(ON_SOURCE, SourceCost),
    )
    move.folder.write_json(LOAD_JSON, report)
    return report
