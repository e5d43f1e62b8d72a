"""A new clone with only what `make run` installs: all commands work."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testkit import ROOT
from testkit.packaging import wheels
from testkit.servers import processes

from .conftest import Serve

LISTED = re.compile(r"^  ([\w-]+) ", re.MULTILINE)
URL = "postgresql://user@127.0.0.1:1/db"
WITHOUT_EXTRAS = """
import re
import sys
from importlib import metadata

plain = set(sys.argv.pop(1).split())
extra = {
    name
    for name, providers in metadata.packages_distributions().items()
    if plain.isdisjoint(re.sub(r"[-_.]+", "-", provider.lower()) for provider in providers)
}


class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in extra:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


assert {"psycopg", "psycopg_pool", "sqlalchemy", "sqlglot", "mypy"} <= extra
sys.meta_path.insert(0, Refusing())
"""
"""Refuses to import packages outside requirements.txt, although they are installed here."""
IMPORT_COMPILED = """
from importlib import import_module
from partita.installation import compiled_modules

for module in compiled_modules.MODULES:
    import_module("partita." + module.removesuffix(".py").replace("/", "."))
"""
HELP_OF_ALL = """
import click
from partita.cli.command_groups import commands


def walk(group, *path):
    for name in group.list_commands(click.Context(group)):
        try:
            commands.main([*path, name, "--help"], prog_name="partita", standalone_mode=False)
        except Exception as error:
            raise SystemExit(f"{(*path, name)}: {error!r}")
        _, command, _ = group.resolve_command(click.Context(group), [name])
        if isinstance(command, click.Group):
            walk(command, *path, name)


walk(commands)
"""
RUN = "from partita.cli import main; main()"


def _plain() -> str:
    """Returns the packages of requirements.txt and Partita's own."""
    pins = (ROOT / "requirements.txt").read_text()
    return " ".join(
        ["partita", "partita-services", *re.findall(r"^([\w.-]+)==", pins, re.MULTILINE)]
    )


def _without_extras(program: str) -> list[str]:
    return [sys.executable, "-c", WITHOUT_EXTRAS + program, _plain()]


class TestImports:
    """The same in this virtual environment, which has every extra. This is faster."""

    def test_compiled_modules_need_no_extra(self) -> None:
        done = processes.run(command=_without_extras(IMPORT_COMPILED))
        assert (done.returncode, done.stderr) == (0, "")

    def test_the_help_of_no_command_needs_an_extra(self) -> None:
        done = processes.run(command=_without_extras(HELP_OF_ALL))
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage: partita storage status" in done.stdout

    def test_a_server_needs_no_extra(self, serve: Serve) -> None:
        arguments = ("serve", "--port", "0", "--in-memory")
        server = serve(*arguments, command=_without_extras(RUN))
        assert server.client().list_tables()["TableNames"] == []
        assert server.terminate() == (0, "")

    def test_the_list_of_commands_imports_none_of_them(self) -> None:
        program = "import atexit, sys; atexit.register(lambda: print(*sys.modules))\n" + RUN
        listed, loaded = processes.run("--help", command=_without_extras(program)).stdout.rsplit(
            "\n", 2
        )[:2]
        assert "storage" in LISTED.findall(listed)
        ours = {name for name in loaded.split() if name.startswith("partita.")}
        assert {name.split(".")[1] for name in ours} <= {
            *("assembly", "cli", "errors", "installation")
        }


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this tree with its own `.venv`, as `make run` makes it."""
    folder = wheels.copied(tmp_path_factory.mktemp("plain") / "clone")
    _make(folder, ".venv/.serving")
    return folder


def _make(clone: Path, goal: str) -> None:
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", goal],
        cwd=clone,
        env=wheels.outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _partita(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    partita = [str(clone / ".venv/bin/partita")]
    return processes.run(*arguments, command=partita, cwd=clone, env=wheels.outside())


class TestClone:
    def test_commands_are_listed_when_asked_for(self, clone: Path) -> None:
        done = _partita(clone, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert {"serve", "migrate", "storage"} <= set(LISTED.findall(done.stdout))

    def test_without_a_command_they_are_listed_too(self, clone: Path) -> None:
        done = _partita(clone)
        assert done.returncode == 2, "click says so of a missing command"
        assert done.stdout + done.stderr == _partita(clone, "--help").stdout

    def test_every_command_has_its_help(self, clone: Path) -> None:
        listed = _partita(clone, "--help").stdout.partition("Commands:")[2].splitlines()
        there = [line for line in listed if not line.endswith("(not installed).")]
        commands = LISTED.findall("\n".join(there))
        assert len(commands) > 18
        failed = {
            command: done.stderr
            for command in commands
            if (done := _partita(clone, command, "--help")).returncode
            or not done.stdout.startswith(f"Usage: partita {command}")
        }
        assert failed == {}

    @pytest.mark.parametrize(
        "arguments",
        [
            ("serve", "--port", "0", "--storage", URL),
            ("storage", "init", URL),
            ("storage", "status", URL),
            ("storage", "copy", "data", URL),
        ],
        ids=lambda arguments: " ".join(arguments[:2]),
    )
    def test_a_missing_package_is_one_sentence_with_what_installs_it(
        self, clone: Path, arguments: tuple[str, ...]
    ) -> None:
        done = _partita(clone, *arguments)
        assert done.returncode == 1
        assert re.fullmatch(
            r"partita: \w+ is not installed; to install it: make install\n", done.stderr
        )

    @pytest.mark.parametrize("command", ["metrics", "migrate", "pagehits"])
    def test_so_is_a_missing_package_of_this_house(self, clone: Path, command: str) -> None:
        listed = _partita(clone, "--help").stdout
        assert re.search(rf"^  {command} .* \(not installed\)\.$", listed, re.MULTILINE)
        for arguments in ((command,), (command, "--help"), (command, "serve", "--port", "0")):
            done = _partita(clone, *arguments)
            assert (done.returncode, done.stdout) == (1, "")
            assert re.fullmatch(
                rf"partita: The command {command} needs partita-[\w-]+, which is not installed; "
                r"to install it: make install\n",
                done.stderr,
            )

    @pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
    def test_it_compiles_and_makes_both_wheels(self, clone: Path) -> None:
        """`make run` starts the same build beside the server."""
        _make(clone, "wheel")
        assert len(list((clone / "dist").glob("partita*-py3-none-any.whl"))) == 5
        assert len(list((clone / "dist").glob("partita-*.whl"))) == 2
        assert len(list((clone / "dist").glob("partita_migrate-*.whl"))) == 2
        assert _partita(clone, "--version").stdout.endswith("(compiled)\n")


def test_the_command_that_installs_a_package_for_a_wheel_works(tmp_path: Path) -> None:
    wheel = wheels.build(tmp_path / "dist")
    partita = [str(wheels.installed(tmp_path / "environment", wheel))]
    missing = processes.run("storage", "status", URL, command=partita, env=wheels.outside())
    assert missing.returncode == 1
    said, _, command = missing.stderr.strip().rpartition("; to install it: ")
    assert said == "partita: psycopg is not installed"
    subprocess.run(["sh", "-c", command], env=wheels.outside(), capture_output=True, check=True)
    there = processes.run("storage", "status", URL, command=partita, env=wheels.outside())
    assert "not installed" not in there.stderr and "Connection refused" in there.stderr
