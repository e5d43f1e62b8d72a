"""Stage `run`: load, verify and follow, one after the other, with cutover and finish on demand.

The folder alone says which stage comes next, and it is asked again before each stage. So a run that
was killed goes on where it was, and completes a cutover, rollback or finish that was under way
first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from partita.errors import PartitaError
from partita_migrate.model.model_files import CHOSEN
from partita_migrate.moving.following.follow import FollowResult, follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.move_status import MoveStatus, status
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.move_phase import BACKWARD, FINISHED, MovePhase
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import last_verified, verify
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

Until = Literal["load", "verify", "follow", "cutover", "finish"]
QUIT = "quit"


class RunReport(Struct, kw_only=True, omit_defaults=True):
    """The outcome of a run."""

    stages: list[str] = field(default_factory=list)
    """The stages that ran, in order."""
    next: str = ""
    """What another run would do; empty when the move is over."""
    is_dry_run: bool = False
    failed: int = 0
    different: int = 0
    followed: FollowResult | None = None
    status: MoveStatus | None = None

    @property
    def is_wrong(self) -> bool:
        """True when rows failed or sides differ."""
        return bool(self.failed or self.different)


class CockpitSession(NamedTuple):
    """The callbacks of the person at the cockpit."""

    asked: Callable[[], str] = lambda: ""
    """Returns the stage that the person has asked for, or `QUIT`, once; "" without a request."""
    tell: Callable[[str], None] = lambda sentence: None
    begin: Callable[[str], None] = lambda stage: None
    """Called when a stage begins."""


def run(
    folder: Folder,
    endpoint: str | None,
    *,
    region: str = "us-east-1",
    name: str = CHOSEN,
    until: Until | None = None,
    is_followed: bool | None = None,
    write_units: float | None = None,
    kinesis: str | None = None,
    is_dry_run: bool = False,
    seat: CockpitSession | None = None,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> RunReport:
    """Runs the stages up to `until`; without it, follows until it is interrupted."""
    ran = RunReport(is_dry_run=is_dry_run, next=next_stage(folder, until))
    if is_dry_run:
        ran.status = status(folder)
        return ran
    cockpit = _Cockpit(folder, endpoint, seat or CockpitSession(), until, ran)
    every = {"region": region, "ask": ask, "progress": progress}
    cockpit.options = {
        "load": {**every, "name": name, "write_units": write_units, "is_followed": is_followed},
        "verify": every,
        "follow": {**every, "write_units": write_units, "is_verifying": True},
        "cutover": {**every, "kinesis": kinesis},
        "rollback": every,
        "finish": every,
    }
    cockpit.run()
    ran.next = next_stage(folder, until)
    ran.status = status(folder)
    return ran


def next_stage(folder: Folder, until: Until | None = None) -> str:
    """Returns the next stage by what the folder says; empty when the move is over."""
    current = status(folder)
    done = {stage.name: stage.is_done for stage in current.stages}
    if not done["load"]:
        return "load"
    if current.under_way:
        return current.under_way
    if current.phase == FINISHED:
        return ""
    if current.phase == BACKWARD:
        return "finish" if until == "finish" else "follow"
    if not _is_verified(folder, current):
        return "verify"
    if not current.is_followed:
        return ""
    return "cutover" if until in ("cutover", "finish") else "follow"


def _is_verified(folder: Folder, current: MoveStatus) -> bool:
    try:
        last_verified(folder, MovePhase(current.phase, current.turns))
    except PartitaError:
        return False
    return True


class _Cockpit:
    """Runs the stages, and those that the person at the cockpit asks for."""

    def __init__(
        self,
        folder: Folder,
        endpoint: str | None,
        seat: CockpitSession,
        until: Until | None,
        ran: RunReport,
    ) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self.seat = seat
        self.until = until
        self.ran = ran
        self.options: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        requested = ""
        while stage := requested or next_stage(self.folder, self.until):
            is_requested, requested = bool(requested), ""
            self.seat.begin(stage)
            self.ran.stages.append(stage)
            try:
                if stage == "follow":
                    requested = self._follow()
                else:
                    self._step(stage)
            except PartitaError as error:
                # A stage that a person asked for may fail: they are told, and following goes on.
                if not is_requested:
                    raise
                self.seat.tell(str(error))
                continue
            if requested == QUIT or stage == self.until or self.ran.is_wrong:
                return

    def _step(self, stage: str) -> None:
        """Runs a stage that ends by itself, and reports it in one sentence."""
        options = self.options[stage]
        match stage:
            case "load":
                loaded = load(self.folder, self.endpoint, **options)
                self.ran.failed = loaded.failed
                rows = sum(table.rows for table in loaded.tables)
                self.seat.tell(f"{rows:,} rows loaded: {loaded.failed:,} failed.")
            case "verify":
                report = verify(self.folder, self.endpoint, **options)
                self.ran.different = report.different
                self.seat.tell(f"{report.rows:,} rows compared: {report.different:,} differences.")
            case "cutover":
                done = cutover(self.folder, self.endpoint, **options)
                self.seat.tell(f"Cut over; writes were refused for {done.refused_seconds:.1f} s.")
            case "rollback":
                back = rollback(self.folder, self.endpoint, **options)
                self.seat.tell(f"Rolled back; {back.items:,} items follow their rows again.")
            case "finish":
                self.ran.different = finish(self.folder, self.endpoint, **options).different
                self.seat.tell("The move is over.")

    def _follow(self) -> str:
        """Follows until the person asks for something, and returns that."""
        stop, over = threading.Event(), threading.Event()
        requests: list[str] = []

        def listen() -> None:
            while not over.wait(0.1):
                if stage := self.seat.asked():
                    requests.append(stage)
                    stop.set()
                    return

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            is_once = self.until == "follow"
            options = self.options["follow"]
            followed = follow(self.folder, self.endpoint, is_once=is_once, stop=stop, **options)
        finally:
            over.set()
            listener.join()
        self.ran.followed, self.ran.different = followed, followed.different
        # An interrupt ends the whole run.
        return requests[0] if requests else QUIT
