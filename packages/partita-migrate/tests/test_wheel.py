"""What is installed is all that the stages need: templates, prices, and no file of this tree."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.packaging import wheels

from .test_examples import copied

STAGES = ("plan", "analyze", "model", "model --check", "estimate", "report")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheels, in a folder of their own."""
    folder = tmp_path_factory.mktemp("wheel")
    for package in ("packages/partita", "packages/partita-migrate"):
        unpacked = wheels.unpacked(wheels.build(folder, package=package))
    return unpacked


@pytest.mark.soak
def test_the_installed_stages_run_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    path = copied("games", tmp_path / "games")
    runpy.run_path(str(path / "generate.py"), run_name="__main__")
    start = "import partita, sys; from partita.cli import main; print(partita.__file__); main()"
    for stage in STAGES:
        done = subprocess.run(
            [sys.executable, "-P", "-c", start, "migrate", *stage.split(), str(path)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(installed)), "it ran from somewhere else"
    assert "model.toml,table,Games,,,100000000" in (path / "estimate.csv").read_text()
    assert "<style>" in (path / "report.html").read_text()
