"""The phase of a move: which way changes are followed, and which side may be written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Raw, Struct, field

from partita.errors import PartitaError
from partita_migrate.row_store.state_store import StateStore

PHASE = "phase"
STREAMS_MADE = "streams_made"
"""Tables whose streams a cutover has switched on."""
DESTINATIONS_MADE = "destinations_made"
"""Kinesis streams, by table, that a cutover has made a destination."""
UNDER_WAY = "under_way"
"""The step that has begun and not ended."""
UNTURNED = "unturned"
"""Set while the fence and the switch in the source may disagree with the phase."""
ENDING = "ending"
"""Set once `finish` removes what following needs; contains its report so far."""
FORWARD, BACKWARD, FINISHED = "forward", "backward", "finished"

Step = Literal["cutover", "rollback", "finish"]


class AuthorityChange(Struct, kw_only=True):
    """One cutover or rollback that was carried out."""

    step: Step
    at: float
    refused_seconds: float
    position: int
    changes: int = 0
    rows: int = 0


class MovePhase(Struct):
    """The phase of a move, with the cutovers and rollbacks that led to it."""

    name: str = FORWARD
    turns: list[AuthorityChange] = field(default_factory=list)


def phase_of(state: StateStore) -> MovePhase:
    return state.fact(PHASE, MovePhase) or MovePhase()


def refusal(phase: str, folder: str, *, is_unturned: bool, is_target_closed: bool) -> str:
    """Returns which side an unfinished step has left closed, and how to open it; empty when none
    is."""
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
    """Records a step while it runs. After a kill the record stays, and the step is to be run
    again."""
    with state.transaction():
        state.set_fact(UNDER_WAY, step)
    try:
        yield
    finally:
        with state.transaction():
            state.remove_fact(UNDER_WAY)


def check_forward(state: StateStore) -> None:
    """Raises when the source must not be followed: the target is authoritative, or the move is
    over."""
    name = phase_of(state).name
    if name == BACKWARD:
        raise PartitaError(
            "The target is authoritative since the cutover; the source is followed again only"
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
