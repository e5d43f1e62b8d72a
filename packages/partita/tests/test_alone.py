"""The wheel of this package works alone, with the wheels that it depends on and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from testkit.packaging import wheels
from testkit.packaging.alone import Alone
from testkit.servers import processes


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(tmp_path_factory.mktemp("alone"), "packages/partita")


def test_its_commands_have_their_help(alone: Alone) -> None:
    listed = alone.said("--help")
    for command in ("metrics", "migrate", "pagehits", "workflow"):
        line = next(line for line in listed.splitlines() if f"  {command} " in line)
        assert line.endswith("(not installed).")
    assert alone.said("serve", "--help").startswith("Usage: partita serve ")


def test_every_module_can_be_imported(alone: Alone) -> None:
    assert (
        alone.imported(
            {
                "psycopg",
                "psycopg_pool",
                "boto3",
                "rich",
                "pyarrow",
                "obstore",
                "amazon",
                "zstandard",
                "pytest",
            }
        )
        > 250
    )


@pytest.fixture(scope="module")
def server(alone: Alone) -> Iterator[processes.Server]:
    command = [str(alone.partita)]
    with processes.starting() as start:
        yield start(*("serve", "--port", "0", "--in-memory"), command=command, env=wheels.outside())


def _answer(server: processes.Server, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_services_that_are_not_installed_are_unknown(server: processes.Server) -> None:
    assert server.client().list_tables()["TableNames"] == []
    with pytest.raises(ClientError, match="UnknownOperationException"):
        server.client("stepfunctions").list_state_machines()
    assert _answer(server, "/2015-03-31/functions/") == _answer(server, "/no-such-page/")


def test_settings_that_need_them_are_refused_in_one_sentence(alone: Alone, tmp_path: Path) -> None:
    settings = tmp_path / "partita.toml"
    settings.write_text('[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\n')
    command = [str(alone.partita)]
    done = processes.run(
        *("serve", "--port", "0", "--in-memory", "--config", settings),
        command=command,
        env=wheels.outside(),
    )
    assert done.returncode == 1
    said, _, install = done.stderr.partition("; to install it: ")
    assert said == "partita: The setting triggers needs partita-services, which is not installed"
    assert install.endswith(" -m pip install partita-services\n")


def test_what_is_not_installed_says_how_to_install_it(alone: Alone) -> None:
    for arguments in (("migrate",), ("migrate", "--help"), ("migrate", "plan", ".")):
        done = processes.run(*arguments, command=[str(alone.partita)], env=wheels.outside())
        assert (done.returncode, done.stdout) == (1, "")
        said, _, install = done.stderr.partition("; to install it: ")
        assert said == "partita: The command migrate needs partita-migrate, which is not installed"
        assert install.endswith(" -m pip install partita-migrate\n")
