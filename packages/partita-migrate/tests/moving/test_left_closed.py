"""However a cutover or rollback ends, the authoritative side takes writes, or the error says how to
open it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.move_status import status
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.fences.source_fence import SOURCE, TARGET
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.switching.move_phase import BACKWARD
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.switching.target_write_block import TargetWriteBlock
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.report.terminal.moving_screen import summarize_status
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import PATTERNS, Sql, script
from testkit.servers.database_servers import PASSWORD
from testkit.servers.processes import ENVIRONMENT
from testkit.servers.proxy import Proxy

from .conftest import KINDS, MakeSource
from .test_life import ready, rows_of
from .test_move import assert_same

BEFORE = {
    "the target is closed": "switching.target_write_block.TargetWriteBlock.close",
    "triggers": "switching.fences.source_fence.SourceFence.install",
    "streams": "switching.cutover._Cutover._begin_streams",
    "comparing": "switching.cutover._Cutover._compare_since",
    "catching up": "switching.cutover._Cutover._catch_up",
    "the gate is closed": "switching.fences.source_fence.SourceFence._try_to_close",
    "comparing the rest": "switching.cutover._Cutover._compare",
    "noting the switch": "switching.cutover._Cutover._commit",
}
"""Steps of a cutover before the point of no return, and where each can be made to fail."""
BEHIND = {
    "opening the target": "switching.target_write_block.TargetWriteBlock.open",
    "turning the switch": "switching.fences.source_fence.SourceFence.turn",
}
ROLLBACK = {
    "the target is closed": "switching.target_write_block.TargetWriteBlock._wait",
    "the rest": "switching.rollback._Rollback._drain",
    "stamping": "switching.rollback._Rollback._stamp",
    "noting the switch": "switching.rollback._Rollback._commit",
}
KILLED = (
    "import os, signal, sys\n"
    "from pathlib import Path\n"
    "from importlib import import_module\n"
    "from partita_migrate.workspace.migration_folder import Folder\n"
    "command, where, folder, endpoint = sys.argv[1:]\n"
    "name, owner, step = where.rsplit('.', 2)\n"
    "module = import_module('partita_migrate.moving.' + name)\n"
    "setattr(getattr(module, owner), step,"
    " lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))\n"
    "run = getattr(import_module('partita_migrate.moving.switching.' + command), command)\n"
    "run(Folder.open(Path(folder)), endpoint)\n"
)


def told(folder: Folder) -> str:
    return "\n".join(str(one) for one in summarize_status(status(folder)))


def broken(monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"partita_migrate.moving.{where}", fail)


def takes_writes(source: Sql, price: int) -> None:
    source.run(f"UPDATE book SET price = {price} WHERE id = 1")
    ((found,),) = rows_of(source, "SELECT price FROM book WHERE id = 1")
    assert int(found) == price


QUICK = ("the gate is closed",)
"""New writers are refused there, and the rest is not closed yet."""


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("postgresql", QUICK),
        *(pytest.param(kind, tuple(BEFORE), marks=pytest.mark.soak) for kind in KINDS),
    ],
)
def test_a_cutover_that_fails_at_any_step_leaves_the_source_open(
    make_source: MakeSource,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    steps: tuple[str, ...],
) -> None:
    source, folder, _ = ready(make_source, target, kind)
    for count, where in enumerate(BEFORE[step] for step in steps):
        error = PartitaError("broken") if count % 2 else KeyboardInterrupt()
        source.run(f"UPDATE book SET title = 'T{count}' WHERE id = 2")
        with monkeypatch.context() as patch:
            broken(patch, where, error)
            with pytest.raises(type(error)):
                cutover(folder, target)
        takes_writes(source, count)
        assert status(folder).refusal == ""
    assert_same(verify(folder, target))
    if len(steps) > len(QUICK):
        assert cutover(folder, target).is_switched
        finish(folder, target)


def test_a_source_that_cannot_be_opened_again_is_said_and_opened_without_the_target(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_source("sqlite", script())
    with Proxy(int(target.rpartition(":")[2])) as network:
        endpoint = f"http://127.0.0.1:{network.port}"
        folder = source.folder(PATTERNS, endpoint)
        load(folder, endpoint, is_followed=True)
        assert_same(verify(folder, endpoint))
        monkeypatch.setattr("partita_migrate.moving.switching.switch_step.AWAY_SECONDS_MAX", 0.0)
        with monkeypatch.context() as patch:
            broken(patch, BEFORE["comparing the rest"], PartitaError("broken."))
            broken(patch, BEHIND["turning the switch"], PartitaError("away."))
            with pytest.raises(PartitaError, match=r"broken\. The source may refuse .* rollback"):
                cutover(folder, endpoint)
        assert "`partita migrate rollback" in told(folder)
        with pytest.raises(Exception, match="was moved"):
            takes_writes(source, 1)
        network.cut()
        monkeypatch.setattr(
            "partita_migrate.moving.target_access.target_client.AWAY_SECONDS_MAX", 0.1
        )
        with pytest.raises(PartitaError, match="The source may refuse writes"):
            cutover(folder, endpoint)
        assert rollback(folder, endpoint).is_switched
        takes_writes(source, 2)
        assert status(folder).refusal == ""
        network.mend()
        assert_same(verify(folder, endpoint))
        assert cutover(folder, endpoint).is_switched


@pytest.mark.parametrize("step", BEHIND)
def test_a_cutover_that_fails_behind_its_switch_says_so_and_is_run_again(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source, folder, app = ready(make_source, target, "sqlite")
    with monkeypatch.context() as patch:
        broken(patch, BEHIND[step], PartitaError("broken."))
        with pytest.raises(PartitaError, match="target is authoritative, but may refuse writes"):
            cutover(folder, target)
    assert "`partita migrate cutover" in told(folder)
    with pytest.raises(Exception, match="was moved"):
        takes_writes(source, 1)
    assert cutover(folder, target).is_switched
    assert status(folder).refusal == ""
    assert rows_of(source, "SELECT side FROM partita_switch") == [(TARGET,)]
    app.set(app.find("book", 1), "price", {"N": "9"})


def test_a_rollback_that_fails_at_any_step_leaves_one_side_open(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder, app = ready(make_source, target, "sqlite")
    cutover(folder, target)
    for count, where in enumerate(ROLLBACK.values()):
        error = PartitaError("broken") if count % 2 else KeyboardInterrupt()
        app.set(app.find("book", 1), "price", {"N": str(count)})
        with monkeypatch.context() as patch:
            if where.endswith("_wait"):
                refuse_once(patch, where)
                error = PartitaError("broken")
            else:
                broken(patch, where, error)
            with pytest.raises(type(error)):
                rollback(folder, target)
        assert status(folder).refusal == ""
    app.set(app.find("book", 2), "price", {"N": "50"})
    monkeypatch.setattr("partita_migrate.moving.switching.switch_step.AWAY_SECONDS_MAX", 0.0)
    with monkeypatch.context() as patch:
        broken(patch, BEHIND["turning the switch"], PartitaError("away."))
        with pytest.raises(PartitaError, match=r"away\. The source may refuse writes"):
            rollback(folder, target)
    assert rollback(folder, target).is_switched
    assert rows_of(source, "SELECT side FROM partita_switch") == [(SOURCE,)]
    takes_writes(source, 7)
    found = rows_of(source, "SELECT price FROM book WHERE id = 2")
    assert [int(price) for (price,) in found] == [50]
    assert_same(verify(folder, target))


def refuse_once(patch: pytest.MonkeyPatch, where: str) -> None:
    """Makes closing fail and opening succeed."""
    real = TargetWriteBlock._wait

    def wait(self: TargetWriteBlock, *, is_refused: bool, is_forced: bool = False) -> None:
        if is_refused:
            raise PartitaError("broken")
        real(self, is_refused=is_refused, is_forced=is_forced)

    patch.setattr(f"partita_migrate.moving.{where}", wait)


def test_a_finish_that_fails_when_the_log_is_gone_is_brought_to_its_end(
    make_source: MakeSource, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder, app = ready(make_source, target, "sqlite")
    cutover(folder, target)
    app.set(app.find("book", 1), "price", {"N": "9"})
    with monkeypatch.context() as patch:
        broken(patch, "switching.fences.source_fence.SourceFence.remove", PartitaError("broken"))
        with pytest.raises(PartitaError, match="broken"):
            finish(folder, target)
    with pytest.raises(PartitaError, match="is being finished"):
        follow(folder, target, is_once=True)
    ended = finish(folder, target)
    assert (ended.rows, ended.different, ended.obstacles) == (50, 0, [])
    assert all(is_right for _, is_right in ended.checks)
    takes_writes(source, 10)


# Kills.


def killed(command: str, where: str, folder: Folder, endpoint: str) -> None:
    """Kills the process at a step."""
    process = subprocess.run(
        [sys.executable, "-c", KILLED, command, where, str(folder.path), endpoint],
        env={**ENVIRONMENT, PASSWORD_ENV: PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == -9, process.stderr


def test_killed_with_the_fence_half_closed_a_cutover_is_undone_by_rollback(
    make_source: MakeSource, target: str
) -> None:
    source, folder, _ = ready(make_source, target, "postgresql")
    killed("cutover", BEFORE["the gate is closed"], folder, target)
    with pytest.raises(Exception, match="was moved"):
        takes_writes(source, 1)
    assert "`partita migrate rollback" in told(folder)
    assert rollback(folder, target).is_switched
    takes_writes(source, 2)
    assert_same(verify(folder, target))


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_each_step_nothing_is_left_closed_without_a_word(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source, folder, app = ready(make_source, target, kind)
    for count, where in enumerate(BEFORE.values()):
        source.run(f"UPDATE book SET title = 'T{count}' WHERE id = 2")
        killed("cutover", where, folder, target)
        if status(folder).refusal:
            assert "`partita migrate rollback" in told(folder)
            assert rollback(folder, target).is_switched
        takes_writes(source, count)
        assert_same(verify(folder, target))
    for where in BEHIND.values():
        if status(folder).phase == BACKWARD:
            assert rollback(folder, target).is_switched
            assert_same(verify(folder, target))
        killed("cutover", where, folder, target)
        assert "`partita migrate cutover" in told(folder)
        assert cutover(folder, target).is_switched
        assert status(folder).refusal == ""
    for count, where in enumerate(ROLLBACK.values()):
        app.set(app.find("book", 1), "price", {"N": str(count)})
        killed("rollback", where, folder, target)
        assert "`partita migrate cutover" in told(folder)
        assert cutover(folder, target).is_switched
        assert status(folder).refusal == ""
    killed("rollback", BEHIND["turning the switch"], folder, target)
    assert "`partita migrate rollback" in told(folder)
    assert rollback(folder, target).is_switched
    takes_writes(source, 7)
    assert_same(verify(folder, target))
