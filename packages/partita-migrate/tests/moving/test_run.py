"""`migrate run` runs all stages in order, whatever it is asked for and whenever it ends."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from partita_migrate.costing.estimate_stage import estimate, monthly
from partita_migrate.moving.following.move_samples import WATCH, summarize_samples
from partita_migrate.moving.move_status import status
from partita_migrate.moving.run_stages import QUIT, CockpitSession, next_stage, run
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from testkit.data.moves import PATTERNS, script
from testkit.servers.database_servers import PASSWORD
from testkit.servers.processes import ENVIRONMENT

from .conftest import MakeSource


def asking(*stages: str) -> tuple[CockpitSession, list[str]]:
    """A person at the cockpit who asks for one thing after the other and records what is
    reported."""
    wanted: Iterator[str] = iter(stages)
    said: list[str] = []
    return CockpitSession(lambda: next(wanted, ""), said.append), said


def test_one_run_goes_through_all_stages_and_a_finished_move_has_none_left(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = source.folder(PATTERNS, target)
    planned = run(folder, target, is_dry_run=True)
    assert (planned.stages, planned.next) == ([], "load")
    ran = run(folder, target, until="follow", is_followed=True)
    assert (ran.stages, ran.next, ran.is_wrong) == (["load", "verify", "follow"], "follow", False)
    assert run(folder, target, until="cutover").stages == ["cutover"]
    cost = monthly(estimate(folder, name="model.toml").estimates[0])
    assert run(folder, target, until="finish").stages == ["finish"]
    assert run(folder, target).stages == []
    assert status(folder).phase == "finished"
    told = (folder.path / "finish.md").read_text()
    for line in ("| book | 40 | 40 | 0 | 0 | 0 |", "50 rows and",
                 f"estimated cost a month: {cost:,.2f} USD", "- cutover at", "- watched for",
                 "- [x] Every row of the source is explained"):  # fmt: skip
        assert line in told


def test_what_is_asked_for_while_following_is_done_and_what_fails_is_said(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = source.folder(PATTERNS, target)
    seat, said = asking("rollback", "cutover", "verify", "rollback", QUIT)
    ran = run(folder, target, is_followed=True, seat=seat)
    assert ran.stages == [
        "load", "verify", "follow", "rollback", "follow", "cutover", "follow", "verify", "follow",
        "rollback", "verify", "follow",
    ]  # fmt: skip
    assert any("nothing to roll back" in sentence for sentence in said)
    assert any("Rolled back" in sentence for sentence in said)
    assert next_stage(folder) == "follow"
    seen = summarize_samples(folder)
    assert seen is not None and seen.samples >= 3 and seen.errors == 0
    assert seen.latency_ms_median > 0


def test_a_sample_that_a_kill_cut_off_is_left_out(make_source: MakeSource, target: str) -> None:
    folder = make_source("sqlite", script()).folder(PATTERNS, target)
    run(folder, target, is_followed=True, until="follow")
    path = folder.path / "move" / WATCH
    before = summarize_samples(folder)
    assert before is not None
    line = path.read_bytes().splitlines()[0]
    path.write_bytes(path.read_bytes() + line[:20] + line + b"\n" + line + b"\n" + line[:10])
    found = summarize_samples(folder)
    assert found is not None and found.samples == before.samples + 1


@pytest.mark.soak
def test_keys_are_pressed_on_a_terminal(make_source: MakeSource, target: str) -> None:
    source = make_source("sqlite", script())
    folder = source.folder(PATTERNS, target)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "partita.cli", "migrate", "run", str(folder.path),
         "--endpoint", target, "--follow"],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**ENVIRONMENT, PASSWORD_ENV: PASSWORD, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = bytearray()

    def read() -> None:
        try:
            while part := os.read(ours, 65536):
                shown.extend(part)
        except OSError:
            return

    threading.Thread(target=read, daemon=True).start()

    def wait_for(phase: str, key: bytes) -> None:
        end = time.monotonic() + 60
        while status(folder).phase != phase or next_stage(folder) != "follow":
            assert time.monotonic() < end and process.poll() is None, shown.decode()
            time.sleep(0.3)
        time.sleep(1.5)
        os.write(ours, key)

    try:
        wait_for("forward", b"c")
        time.sleep(0.5)
        assert b"again for cutover" in shown
        os.write(ours, b"c")
        wait_for("backward", b"q")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert b"Cut over" in shown and b"load" in shown
