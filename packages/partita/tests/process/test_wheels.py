"""What `make wheel` builds: one wheel for any machine, and one with the compiled modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from partita.installation import compiled_modules
from testkit import ROOT
from testkit.packaging import wheels
from testkit.servers import processes

TAGS = {
    wheels.PLAIN: "py3-none-any",
    wheels.COMPILED: f"cp{sys.version_info[0]}{sys.version_info[1]}",
}
SAYS = {wheels.PLAIN: "(plain Python)", wheels.COMPILED: "(compiled)"}
FORMS = [
    wheels.PLAIN,
    pytest.param(
        wheels.COMPILED,
        marks=pytest.mark.skipif(not compiled_modules.is_used(), reason="it is not compiled here"),
    ),
]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def wheel(form: str, tmp_path: Path) -> Path:
    return wheels.build(tmp_path / "dist", form)


def test_a_wheel_is_tagged_for_what_it_holds(wheel: Path, form: str) -> None:
    assert TAGS[form] in wheel.name
    folder = wheels.unpacked(wheel)
    said = processes.run("--version", env={**wheels.outside(), "PYTHONPATH": str(folder)}).stdout
    assert said.strip().endswith(SAYS[form])


@pytest.mark.soak
def test_the_wire_suite_passes_against_an_installed_wheel(
    wheel: Path, form: str, tmp_path: Path
) -> None:
    partita = str(wheels.installed(tmp_path / "environment", wheel))
    said = processes.run("--version", command=[partita], env=wheels.outside()).stdout
    assert said.strip().endswith(SAYS[form])
    arguments = ("serve", "--port", "0", "--in-memory")
    with processes.starting() as start:
        server = start(
            *arguments, command=[partita], env=wheels.outside(), cwd=tmp_path, stderr=None
        )
        suite = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "packages/partita/tests/wire"],
            cwd=ROOT,
            env={**os.environ, "PARTITA_ENDPOINT": server.url},
            check=False,
        )
        assert suite.returncode == 0
