"""The Dockerfile and systemd's unit do what they say, as far as that can be seen without either."""

from __future__ import annotations

import configparser
import fnmatch
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.server.security.identities.user_directory import ROOT_KEY_ID, ROOT_SECRET
from testkit import ROOT
from testkit.packaging import wheels
from testkit.servers import processes

from .conftest import Run, Serve

Environment = dict[str, str]

UNIT = ROOT / "deploy/partita.service"
INSTRUCTION = re.compile(r"^([A-Z]+) +((?:.*\\\n)*.*)$", re.MULTILINE)
HEALTH_SECONDS_MAX = 60


def _stages() -> list[list[tuple[str, str]]]:
    """The instructions of the Dockerfile, one list for each stage."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages: list[list[tuple[str, str]]] = []
    for name, value in INSTRUCTION.findall(text):
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((name, value))
    return stages


BUILD_STAGE, FINAL_STAGE = _stages()


def _last(name: str) -> str:
    return [value for found, value in FINAL_STAGE if found == name][-1]


def _copied() -> list[str]:
    """Returns what the build copies from this tree."""
    copies = [shlex.split(value) for name, value in BUILD_STAGE if name == "COPY"]
    return [source for copy in copies for source in copy[:-1]]


def _environment() -> dict[str, str]:
    """Returns the environment of a container, without its PATH."""
    words = shlex.split(_last("ENV").replace("\\\n", " "))
    return dict(word.split("=", 1) for word in words if not word.startswith("PATH="))


def _documented() -> list[list[str]]:
    """Returns the arguments of each server that docs/how-to/install.md runs in a container."""
    text = (ROOT / "docs/how-to/install.md").read_text()
    lines = re.findall(r"^\$ docker run .* partita( serve.*)?$", text, re.MULTILINE)
    assert len(lines) == 3
    return [shlex.split(line) or json.loads(_last("CMD")) for line in lines]


def _replaced(command: list[str], values: dict[str, str]) -> list[str]:
    """Replaces the values of some options, so that the command runs on any machine."""
    after = dict(zip(command[1:], command, strict=False))
    return [values.get(after.get(word, ""), word) for word in command]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this tree that .dockerignore lets through to the build."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    folder = tmp_path_factory.mktemp("docker") / "context"
    return wheels.copied(folder, lambda name: not _is_ignored(name, rules))


def _is_ignored(name: str, rules: list[str]) -> bool:
    """True if the last rule that matches a file, or a folder around it, ignores it."""
    parts = name.split("/")
    paths = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        against = parts if "**/" in rule else paths
        if any(fnmatch.fnmatchcase(path, pattern) for path in against):
            ignored = not rule.startswith("!")
    return ignored


@pytest.fixture
def container(tmp_path: Path) -> Environment:
    """The environment of a container, with a port and a folder that are free here."""
    here = {"PARTITA_SERVE_PORT": "0", "PARTITA_SERVE_DATA": str(tmp_path)}
    root = {ROOT_KEY_ID: "AROOTKEY", ROOT_SECRET: "a-secret-of-a-root-key"}
    return {**processes.ENVIRONMENT, **_environment(), **here, **root}


class TestDockerfile:
    def test_everything_that_is_copied_reaches_the_build(self, context: Path) -> None:
        assert _copied()
        assert [name for name in _copied() if not (context / name).exists()] == []

    def test_nothing_else_does(self, context: Path) -> None:
        assert sorted(path.name for path in context.iterdir()) == sorted(_copied())

    def test_it_does_not_run_as_root(self) -> None:
        assert int(_last("USER")) > 0

    def test_its_base_is_one_image_and_no_other(self) -> None:
        text = (ROOT / "Dockerfile").read_text()
        assert re.search(r"^ARG PYTHON=[\w.-]+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
        bases = {value.split()[0] for name, value in INSTRUCTION.findall(text) if name == "FROM"}
        assert bases == {"python:${PYTHON}"}

    def test_packages_are_installed_with_hashes(self) -> None:
        steps = [value for name, value in BUILD_STAGE if name == "RUN"]
        installs = [part for step in steps for part in step.split("&&") if " install " in part]
        pip = [part for part in installs if "/pip " in part and "--no-deps dist/" not in part]
        assert len(pip) == 2 and all("--require-hashes" in part for part in pip)

    def test_the_data_is_on_a_volume(self) -> None:
        assert _environment()["PARTITA_SERVE_DATA"] == _last("VOLUME")

    def test_it_does_not_let_everybody_in_unasked(self, run: Run, container: Environment) -> None:
        assert json.loads(_last("ENTRYPOINT")) == ["partita"]
        refused = run(*json.loads(_last("CMD")), env=container)
        assert refused.returncode == 1
        assert "Start it with --auth, or with --no-auth" in refused.stderr

    @pytest.mark.parametrize("arguments", _documented(), ids=" ".join)
    def test_the_server_is_healthy_where_it_listens(
        self, serve: Serve, container: Environment, arguments: list[str]
    ) -> None:
        server = serve(*arguments, env=container)
        assert _health(server.port) == 0
        server.terminate()
        assert _health(server.port) != 0

    def test_the_port_of_the_server_is_published_and_asked(self) -> None:
        environment = _environment()
        assert environment["PARTITA_SERVE_PORT"] == _last("EXPOSE")
        assert f":{_last('EXPOSE')}/health" in _last("HEALTHCHECK")
        assert environment["PARTITA_SERVE_HOST"] == "0.0.0.0", "not only inside the container"

    @pytest.mark.soak
    @pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
    def test_the_steps_of_the_build_give_a_compiled_server(
        self, context: Path, tmp_path: Path
    ) -> None:
        places = {place: str(tmp_path / place.strip("/")) for place in ("/build", "/opt/partita")}
        for step in _steps():
            for place, stand_in in places.items():
                step = re.sub(rf"(?<![\w.]){place}(?=[/ ])", stand_in, step)
            subprocess.run(["sh", "-ec", step], cwd=context, env=wheels.outside(), check=True)
        partita = [f"{places['/opt/partita']}/bin/partita"]
        assert (
            "(compiled)" in processes.run("--version", command=partita, env=wheels.outside()).stdout
        )


def _steps() -> Iterator[str]:
    """Yields what the build runs, except for the installation of the compiler."""
    for name, value in BUILD_STAGE:
        if name == "RUN" and not value.startswith("apt-get"):
            yield value.replace("python -m venv", f"{sys.executable} -m venv")


def _health(port: int) -> int:
    """Returns the exit code of the health check."""
    check = _last("HEALTHCHECK").partition("CMD")[2]
    program = json.loads(check)[2].replace(f":{_last('EXPOSE')}/", f":{port}/")
    asked = [sys.executable, "-c", program]
    return subprocess.run(asked, stderr=subprocess.DEVNULL, timeout=HEALTH_SECONDS_MAX).returncode


class TestUnit:
    def test_the_service_starts_and_keeps_its_data(self, serve: Any, tmp_path: Path) -> None:
        command = shlex.split(_unit()["Service"]["ExecStart"])
        state = _unit()["Service"]["StateDirectory"]
        assert command[command.index("--data") + 1] == f"%S/{state}"
        data = tmp_path / state
        environment = {**processes.ENVIRONMENT, "PARTITA_SERVE_PORT": "0"}
        server = serve(*_replaced(command, {"--data": str(data)})[1:], env=environment)
        assert server.terminate() == (0, "")
        assert any(data.iterdir())

    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
    def test_systemd_understands_every_line(self, tmp_path: Path) -> None:
        unit = tmp_path / UNIT.name
        unit.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/sh", UNIT.read_text()))
        said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        assert (said.returncode, said.stdout + said.stderr) == (0, "")


def _unit() -> configparser.ConfigParser:
    # systemd lets a key occur more than once.
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNIT)
    return parser
