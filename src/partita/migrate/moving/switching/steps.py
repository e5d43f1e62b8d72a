"""What cutover and rollback have in common: a step that changes which side is authoritative."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from msgspec import Struct

from partita.migrate.folder import Folder
from partita.migrate.moving.moves import Move, open_move
from partita.migrate.moving.switching.closing import TargetGate
from partita.migrate.moving.switching.phases import Step, check_unfinished, under_way


class Switched(Struct, kw_only=True, omit_defaults=True):
    source: str
    endpoint: str
    position: int
    is_dry_run: bool = False
    is_switched: bool = False
    refused_seconds: float = 0.0
    """For how long one side refused writes before the other was authoritative."""
    seconds: float = 0.0
    changes: int = 0


Result = TypeVar("Result", bound=Switched)


@contextmanager
def switching(
    step: Step,
    result: type[Result],
    folder: Folder,
    endpoint: str | None,
    *,
    region: str,
    is_dry_run: bool,
    ask: Callable[[str], str] | None,
) -> Iterator[tuple[Move, TargetGate, Result]]:
    """The move, the gate of its target, and the report, which is written at the end."""
    began = time.monotonic()
    with open_move(folder, endpoint, region=region, ask=ask) as move:
        check_unfinished(move.state)
        found = result(
            source=str(move.origin.address),
            endpoint=move.target.endpoint,
            position=move.position,
            is_dry_run=is_dry_run,
        )
        with nullcontext() if is_dry_run else under_way(move.state, step):
            yield move, TargetGate(move, endpoint, region), found
        found.position = move.position
        found.seconds = round(time.monotonic() - began, 3)
        if not is_dry_run:
            folder.write_json(f"{step}.json", found)
