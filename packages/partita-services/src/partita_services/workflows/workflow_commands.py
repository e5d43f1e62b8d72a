"""`partita workflow`: validate, run and draw machines, and show histories."""

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
from partita.installation.optional_packages import packages_required

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
        help="The endpoint of the server.",
    )


class WorkflowGroup(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        with packages_required("partita-services"):
            return super().invoke(ctx)


@click.group(cls=WorkflowGroup)
def workflow() -> None:
    """Validate, run and draw Amazon States Language machines.

    FILE is a machine in JSON, which may have comments (//, #). The machine is named like the file.
    """


@workflow.command()
@_file
@click.option("--type", "type_", type=click.Choice(TYPES), default=TYPES[0], show_default=True)
def validate(path: Path, type_: str) -> None:
    """List the errors of a machine. Exits with 1 when it cannot run."""
    from partita_services.workflows import machine_file
    from partita_services.workflows.language import InvalidDefinition, diagnose

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
@click.option("--input", "input_", default="{}", help="JSON, or @ and the name of a file.")
@_endpoint(None)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Settings with [[functions]] for the server that this command starts.",
)
@click.option(
    "--time-scale", type=click.FloatRange(0, min_open=True), help="Speed up waits by this factor."
)
@click.option("--name", help="The name of the execution.")
@click.option("--history", "shows_history", is_flag=True, help="Also show the history.")
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

    Without --endpoint an in-memory server is started for it. Exits with 1 if the execution fails.
    """
    from partita_services.workflows import machine_file
    from partita_services.workflows.remote_machines import private_server

    if endpoint is not None and (config is not None or time_scale is not None):
        raise click.UsageError("--config and --time-scale cannot be used with --endpoint.")
    definition = machine_file.read(path)
    input = _input(input_)
    server = nullcontext(endpoint) if endpoint else private_server(config, time_scale)
    with server as url:
        assert url is not None
        running = _run(url, machine_file.name(path), definition, input, name, shows_history)
        execution = asyncio.run(running)
    if execution["status"] != "SUCCEEDED":
        reason = ": ".join(execution[part] for part in ("error", "cause") if part in execution)
        words = execution["status"].lower().replace("_", " ")
        raise PartitaError(f"The execution {words}{f' with {reason}' if reason else ''}.")
    click.echo(json.dumps(json.loads(execution["output"]), indent=2, ensure_ascii=False))


async def _run(
    endpoint: str, machine: str, definition: str, input: str, name: str | None, shows_history: bool
) -> dict[str, Any]:
    from partita_services.workflows import history_listing
    from partita_services.workflows.remote_machines import RemoteMachines

    async with RemoteMachines(endpoint) as remote:
        execution = await remote.run(await remote.put(machine, definition), input, name)
        if shows_history:
            events = [event async for event in remote.events(execution["executionArn"])]
            for line in history_listing.lines(events):
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
@click.option("--execution", help="The name of an execution; by default the last one.")
@_endpoint(ENDPOINT)
def history(machine: str, execution: str | None, endpoint: str) -> None:
    """Show the history of an execution, by the file of its machine or by its ARN."""
    from partita_services.workflows import history_listing, machine_file
    from partita_services.workflows.remote_machines import RemoteMachines
    from partita_services.workflows.running import state_machine_arns

    async def read() -> list[dict[str, Any]]:
        async with RemoteMachines(endpoint) as remote:
            if machine.startswith("arn:"):
                arn = machine
            elif execution is not None:
                named = state_machine_arns.ExecutionName(
                    machine_file.name(Path(machine)), execution
                )
                arn = state_machine_arns.execution_arn(named)
            else:
                arn = await remote.latest(
                    state_machine_arns.machine_arn(machine_file.name(Path(machine)))
                )
            return [event async for event in remote.events(arn)]

    for line in history_listing.lines(asyncio.run(read())):
        click.echo(line)


@workflow.command()
@_file
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the drawing to a file: .svg, or Mermaid for .mmd and .md.",
)
def graph(path: Path, output: Path | None) -> None:
    """Draw a machine."""
    from partita_services.workflows import machine_file
    from partita_services.workflows.drawing import for_file, text
    from partita_services.workflows.language import parse

    machine = parse(machine_file.read(path))
    if output is None:
        click.echo(text(machine))
        return
    drawn = for_file(machine, output.suffix)
    try:
        output.write_text(drawn)
    except OSError as error:
        raise PartitaError(f"Cannot write {output}: {error.strerror}.") from error
    click.echo(f"{path} is drawn in {output}.")
