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

from .. import processes, wheels

ROOT = Path(__file__).parents[2]
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
    """What the build takes from this tree."""
    copies = [shlex.split(value) for name, value in BUILD_STAGE if name == "COPY"]
    return [source for copy in copies for source in copy[:-1]]


def _command() -> list[str]:
    return [*json.loads(_last("ENTRYPOINT")), *json.loads(_last("CMD"))]


def _replaced(command: list[str], values: dict[str, str]) -> list[str]:
    """With other values of options, so that it runs on any machine."""
    after = dict(zip(command[1:], command, strict=False))
    return [values.get(after.get(word, ""), word) for word in command]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this tree that .dockerignore lets through to the build."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    folder = tmp_path_factory.mktemp("docker") / "context"
    return wheels.copied(folder, lambda name: not _is_ignored(name, rules))


def _is_ignored(name: str, rules: list[str]) -> bool:
    """By the last rule that a file, or a folder that it is in, agrees with."""
    parts = name.split("/")
    paths = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        against = parts if "**/" in rule else paths
        if any(fnmatch.fnmatchcase(path, pattern) for path in against):
            ignored = not rule.startswith("!")
    return ignored


class TestDockerfile:
    def test_everything_that_is_copied_reaches_the_build(self, context: Path) -> None:
        assert _copied()
        assert [name for name in _copied() if not (context / name).exists()] == []

    def test_nothing_else_does(self, context: Path) -> None:
        assert sorted(path.name for path in context.iterdir()) == sorted(_copied())

    def test_it_does_not_run_as_root(self) -> None:
        assert int(_last("USER")) > 0

    def test_the_data_is_on_a_volume(self) -> None:
        command = _command()
        assert command[command.index("--data") + 1] == _last("VOLUME")

    def test_the_server_is_healthy_where_it_listens(self, serve: Any, tmp_path: Path) -> None:
        here = {"--host": "127.0.0.1", "--port": "0", "--data": str(tmp_path)}
        command = _replaced(_command(), here)
        assert command[0] == "partita"
        server = serve(*command[1:])
        assert _health(server.port) == 0
        server.terminate()
        assert _health(server.port) != 0

    def test_the_port_of_the_server_is_published_and_asked(self) -> None:
        command = _command()
        assert command[command.index("--port") + 1] == _last("EXPOSE")
        assert f":{_last('EXPOSE')}/health" in _last("HEALTHCHECK")
        assert command[command.index("--host") + 1] == "0.0.0.0", "not only inside the container"

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
    """What the build runs, apart from the installation of the compiler."""
    for name, value in BUILD_STAGE:
        if name == "RUN" and not value.startswith("apt-get"):
            yield value.replace("python -m venv", f"{sys.executable} -m venv")


def _health(port: int) -> int:
    """The exit code of the health check."""
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
