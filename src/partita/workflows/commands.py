"""`partita workflow`: check machines, run them, see what they did, draw them. Parsing only."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from partita.errors import PartitaError
from partita.workflows.optional_packages import explained

ENDPOINT = "http://127.0.0.1:8000"
Command = TypeVar("Command", bound=Callable[..., Any])
TYPES = ("STANDARD", "EXPRESS")

_file = click.argument("path", metavar="FILE", type=click.Path(path_type=Path))


def _endpoint(default: str | None) -> Callable[[Command], Command]:
    return click.option(
        "--endpoint",
        envvar="AWS_ENDPOINT_URL_SFN",
        default=default,
        show_default=default is not None,
        help="Where the server is.",
    )


class Workflow(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        with explained():
            return super().invoke(ctx)


@click.group(cls=Workflow)
def workflow() -> None:
    """Amazon States Language machines.

    FILE is a machine in JSON, in which comments (//, #) are allowed; the machine has its name.
    """


@workflow.command()
@_file
@click.option("--type", "type_", type=click.Choice(TYPES), default=TYPES[0], show_default=True)
def validate(path: Path, type_: str) -> None:
    """Say what is wrong with a machine. Exits with 1 when it cannot run."""
    from partita.workflows import machine_file
    from partita.workflows.language import InvalidDefinition, diagnose

    try:
        machine_file.machine(path, type_)
    except InvalidDefinition as error:
        for line in machine_file.findings(error):
            click.echo(line, err=True)
        sys.exit(1)
    for finding in diagnose(machine_file.read(path)):
        click.echo(f"{finding.severity.lower()}: {finding}")
    click.echo(f"{path} is valid.")


@workflow.command()
@_file
@click.option("--input", "input_", default="{}", help="JSON, or @ and the name of a file with it.")
@_endpoint(None)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The settings with [[functions]], for a server of its own.",
)
@click.option("--time-scale", type=click.FloatRange(0, min_open=True), help="How fast waits pass.")
@click.option("--name", help="Of the execution.")
@click.option("--history", "shows_history", is_flag=True, help="Show what happened, too.")
def run(
    path: Path,
    input_: str,
    endpoint: str | None,
    config: Path | None,
    time_scale: float | None,
    name: str | None,
    shows_history: bool,
) -> None:
    """Run a machine and print its output.

    Without --endpoint a server in memory is started for it. Exits with 1 when the execution fails.
    """
    from partita.workflows import machine_file
    from partita.workflows.remote import private_server

    if endpoint is not None and (config is not None or time_scale is not None):
        raise click.UsageError("--config and --time-scale are for a server of its own.")
    definition = machine_file.read(path)
    given = _input(input_)
    server = nullcontext(endpoint) if endpoint else private_server(config, time_scale)
    with server as url:
        assert url is not None
        told = _run(url, machine_file.name(path), definition, given, name, shows_history)
        execution = asyncio.run(told)
    if execution["status"] != "SUCCEEDED":
        reason = ": ".join(execution[part] for part in ("error", "cause") if part in execution)
        words = execution["status"].lower().replace("_", " ")
        raise PartitaError(f"The execution {words}{f' with {reason}' if reason else ''}.")
    click.echo(json.dumps(json.loads(execution["output"]), indent=2, ensure_ascii=False))


async def _run(
    endpoint: str, machine: str, definition: str, given: str, name: str | None, shows_history: bool
) -> dict[str, Any]:
    from partita.workflows import history_table
    from partita.workflows.remote import Remote

    async with Remote(endpoint) as remote:
        execution = await remote.run(await remote.put(machine, definition), given, name)
        if shows_history:
            events = [event async for event in remote.events(execution["executionArn"])]
            for line in history_table.lines(events):
                click.echo(line, err=True)
    return execution


def _input(text: str) -> str:
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except OSError as error:
            raise PartitaError(f"Cannot read {text[1:]}: {error.strerror}.") from error
    try:
        json.loads(text)
    except ValueError as error:
        raise PartitaError(f"The input is not JSON: {error}.") from error
    return text


@workflow.command()
@click.argument("machine", metavar="FILE|ARN")
@click.option("--execution", help="The name of an execution; the last one otherwise.")
@_endpoint(ENDPOINT)
def history(machine: str, execution: str | None, endpoint: str) -> None:
    """Show what an execution did: of the machine of a file, or by its ARN."""
    from partita.workflows import history_table, machine_file
    from partita.workflows.remote import Remote
    from partita.workflows.running import arns

    async def read() -> list[dict[str, Any]]:
        async with Remote(endpoint) as remote:
            if machine.startswith("arn:"):
                arn = machine
            elif execution is not None:
                named = arns.ExecutionName(machine_file.name(Path(machine)), execution)
                arn = arns.execution_arn(named)
            else:
                arn = await remote.latest(arns.machine_arn(machine_file.name(Path(machine))))
            return [event async for event in remote.events(arn)]

    for line in history_table.lines(asyncio.run(read())):
        click.echo(line)


@workflow.command()
@_file
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw into a file: .svg, or Mermaid for .mmd and .md.",
)
def graph(path: Path, output: Path | None) -> None:
    """Draw a machine."""
    from partita.workflows import machine_file
    from partita.workflows.drawing import for_file, text
    from partita.workflows.language import parse

    machine = parse(machine_file.read(path))
    if output is None:
        click.echo(text(machine))
        return
    drawn = for_file(machine, output.suffix)
    try:
        output.write_text(drawn)
    except OSError as error:
        raise PartitaError(f"Cannot write {output}: {error.strerror}.") from error
    click.echo(f"{output} shows {path}.")
