"""`partita workflow`: what it prints, where it stops, and what it says then."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita import cli

from .conftest import Json, function, one_task, write_functions
from .test_state_machines import PASS

Said = Callable[..., tuple[str, str]]
FIGURE = Path(__file__).parent / "language" / "figure_5_11.jsonc"


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    """`machine(definition)`: a file with the definition."""

    def write(definition: Json | str, name: str = "machine.asl.json") -> Path:
        path = tmp_path / name
        text = definition if isinstance(definition, str) else json.dumps(definition)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Said:
    """`said("validate", path)`: what a command writes to stdout and to stderr."""

    def run(*arguments: str | Path, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["partita", "workflow", *map(str, arguments)])
        ended: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            ended = end.code
        printed, errors = capfd.readouterr()
        assert ended == code, printed + errors
        return printed, errors

    return run


def test_a_valid_machine_is_said_to_be_valid(said: Said, machine: Any) -> None:
    path = machine(PASS)
    assert said("validate", path) == (f"{path} is valid.\n", "")
    assert said("validate", FIGURE)[0] == f"{FIGURE} is valid.\n"


def test_everything_that_is_wrong_is_listed(said: Said, machine: Any) -> None:
    path = machine(
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "C": {"Type": "Magic"}}}
    )
    printed, errors = said("validate", path, code=1)
    assert printed == ""
    assert len(errors.splitlines()) >= 2
    assert all(line.startswith("error: ") for line in errors.splitlines())


@pytest.mark.parametrize("command", ["validate", "run", "graph"])
def test_a_file_that_is_not_there_is_named(said: Said, command: str, tmp_path: Path) -> None:
    _, errors = said(command, tmp_path / "missing.json", code=1)
    assert (
        errors == f"partita: Cannot read {tmp_path / 'missing.json'}: No such file or directory.\n"
    )


def test_a_failed_execution_is_told_in_one_sentence(said: Said, machine: Any) -> None:
    fail = {"Type": "Fail", "Error": "Broken", "Cause": "it was the cat"}
    path = machine({"StartAt": "F", "States": {"F": fail}})
    printed, errors = said("run", path, "--history", code=1)
    assert printed == ""
    assert errors.splitlines()[-1] == ("partita: The execution failed with Broken: it was the cat.")
    assert "FailStateEntered" in errors


def test_an_input_that_is_not_json_is_told_before_anything_starts(said: Said, machine: Any) -> None:
    _, errors = said("run", machine(PASS), "--input", "{", code=1)
    assert errors.startswith("partita: The input is not JSON: ")


def test_an_input_may_come_from_a_file(said: Said, machine: Any, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"a": [1, "ä"]}')
    printed, _ = said("run", machine(PASS), "--input", f"@{tmp_path / 'input.json'}")
    assert json.loads(printed) == {"a": [1, "ä"]}


def test_the_figure_of_the_thesis_runs_as_it_stands(said: Said, tmp_path: Path) -> None:
    (tmp_path / "lambdas.py").write_text(
        "def migrate(event, context):\n"
        "    if event.get('fails'):\n"
        "        raise ValueError('no')\n"
        "    return event\n"
        "def clean_up(event, context):\n"
        "    print('cleaned up', event['metric'])\n"
        "    return event\n"
    )
    (tmp_path / "partita.toml").write_text(
        "[[functions]]\nname = 'MigrateOneMetricLambda'\nhandler = 'lambdas:migrate'\n"
        "[[functions]]\nname = 'CleanUpDynamoDbFromMigratedMetricMetadataLambda'\n"
        "handler = 'lambdas:clean_up'\n"
    )
    config = ("--config", tmp_path / "partita.toml")
    printed, _ = said("run", FIGURE, *config, "--input", '{"metric": "m1"}')
    assert json.loads(printed) == {"metric": "m1"}
    failing = '{"metric": "m2", "fails": true}'
    _, errors = said("run", FIGURE, *config, "--input", failing, code=1)
    assert "cleaned up m2" in errors
    assert errors.splitlines()[-1] == "partita: The execution failed."


def test_history_shows_the_last_execution_of_a_server(
    said: Said, serve: Any, machine: Any, tmp_path: Path
) -> None:
    settings = write_functions(tmp_path)
    server = serve("serve", "--port", "0", "--in-memory", "--config", settings)
    path = machine(one_task(function("add_one")))
    at = ("--endpoint", server.url)
    said("run", path, *at, "--name", "first", "--input", '{"n": 1}')
    said("run", machine(one_task(function("echo"))), *at, "--name", "second", "--input", '{"n": 5}')
    last = said("history", path, *at)[0].splitlines()
    assert last[0].split() == ["id", "seconds", "type", "state", "what"]
    assert [line.split()[2] for line in last[1:]][:3] == [
        "ExecutionStarted",
        "TaskStateEntered",
        "LambdaFunctionScheduled",
    ]
    assert last[-1].endswith('{"n":5}')
    first = said("history", path, *at, "--execution", "first")[0]
    assert first.rstrip().endswith('{"n":2}')
    arn = "arn:aws:states:us-east-1:123456789012:execution:machine:first"
    assert said("history", arn, *at)[0] == first
    _, errors = said("history", tmp_path / "other.json", *at, code=1)
    assert "State Machine Does Not Exist" in errors
    assert len(errors.splitlines()) == 1


def test_a_server_that_is_not_there_is_named(said: Said, machine: Any) -> None:
    _, errors = said("history", machine(PASS), "--endpoint", "http://127.0.0.1:1", code=1)
    assert "No answer from http://127.0.0.1:1" in errors
    assert len(errors.splitlines()) == 1


def test_a_drawing_goes_into_the_file_that_is_named(
    said: Said, machine: Any, tmp_path: Path
) -> None:
    path = machine(PASS)
    for name, begins in (("a.svg", "<svg "), ("a.mmd", "flowchart TD"), ("a.md", "```mermaid\n")):
        printed, _ = said("graph", path, "--output", tmp_path / name)
        assert printed == f"{path} is drawn in {tmp_path / name}.\n"
        assert (tmp_path / name).read_text().startswith(begins)
    _, errors = said("graph", path, "--output", tmp_path / "a.png", code=1)
    assert errors == "partita: The file of a drawing must end in .svg, .mmd, .md, not '.png'.\n"
