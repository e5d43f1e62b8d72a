"""Where a move is: which way changes are followed, and who may write where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Raw, Struct, field

from partita.errors import PartitaError
from partita_migrate.moving.state import StateStore

PHASE = "phase"
STREAMS_MADE = "streams_made"
"""Tables whose streams a cutover has switched on."""
DESTINATIONS_MADE = "destinations_made"
"""Kinesis streams that a cutover has made tables send their changes to, by table."""
UNDER_WAY = "under_way"
"""The step that was begun and has not come to its end."""
UNTURNED = "unturned"
"""Set while the fence and the switch in the source may not be what the phase says."""
ENDING = "ending"
"""Set from when `finish` removes what following needs: what it had found by then."""
FORWARD, BACKWARD, FINISHED = "forward", "backward", "finished"

Step = Literal["cutover", "rollback", "finish"]


class Turn(Struct, kw_only=True):
    """One cutover or rollback that was carried out."""

    step: Step
    at: float
    refused_seconds: float
    position: int
    changes: int = 0
    rows: int = 0


class Phase(Struct):
    name: str = FORWARD
    turns: list[Turn] = field(default_factory=list)


def phase_of(state: StateStore) -> Phase:
    return state.fact(PHASE, Phase) or Phase()


def refusal(phase: str, folder: str, *, is_unturned: bool, is_target_closed: bool) -> str:
    """What a step that did not come to its end has left closed, and what opens it; or empty."""
    if phase == FORWARD and is_unturned:
        return (
            f"The source may refuse writes: `partita migrate rollback {folder}` opens it, or run"
            " `cutover` again."
        )
    if phase == BACKWARD and (is_unturned or is_target_closed):
        return (
            "The target is authoritative, but may refuse writes, and the switch may not name it:"
            f" `partita migrate cutover {folder}` sets both right, or run `rollback`."
        )
    return ""


@contextmanager
def under_way(state: StateStore, step: Step) -> Iterator[None]:
    """Noted until it succeeds or fails: what is noted still was killed, and is to be run again."""
    with state.transaction():
        state.set_fact(UNDER_WAY, step)
    try:
        yield
    finally:
        with state.transaction():
            state.remove_fact(UNDER_WAY)


def check_forward(state: StateStore) -> None:
    """Raises where the source must not be followed: the target is authoritative, or all is over."""
    name = phase_of(state).name
    if name == BACKWARD:
        raise PartitaError(
            "The target is authoritative since the cutover, and the source is only followed again"
            " after `partita migrate rollback`."
        )
    check_unfinished(state)


def check_unfinished(state: StateStore) -> None:
    if state.fact(ENDING, Raw) is not None:
        raise PartitaError(
            "The move is being finished, and nothing is followed or switched any more; run"
            " `partita migrate finish` again, which goes on where it was."
        )
    if phase_of(state).name == FINISHED:
        raise PartitaError("The move is finished; nothing is followed or switched any more.")
