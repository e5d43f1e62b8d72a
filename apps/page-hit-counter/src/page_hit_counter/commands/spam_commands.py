"""`partita pagehits quarantine`: read, release or confirm the cases of the spam filter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from page_hit_counter.commands.command_options import (
    config_option,
    endpoint_option,
    json_option,
    print_json,
)

if TYPE_CHECKING:
    from page_hit_counter.spam.quarantine import Quarantine
    from page_hit_counter.spam.spam_cases import SpamCase

STATUSES = ("observed", "quarantined", "releasing", "released", "confirmed")


@click.group()
def quarantine() -> None:
    """Read, release or confirm what the spam filter has withheld."""


def _quarantined(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that all commands of the quarantine share."""
    brand = click.option("--brand", required=True, help="The brand of the cases.")
    return brand(endpoint_option(config_option(json_option(command))))


@quarantine.command("list")
@_quarantined
@click.option("--status", type=click.Choice(STATUSES), help="Only cases with this status.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
def list_cases(
    brand: str, endpoint: str, config: Path | None, as_json: bool, status: Any, limit: int
) -> None:
    """List cases, newest first."""
    cases = _with_quarantine(
        config, endpoint, lambda quarantine: quarantine.cases(brand, status, limit)
    )
    if as_json:
        print_json(cases)
        return
    for case in cases:
        click.echo(_line(case))


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def show(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Show a case with its explanation and its visits."""

    async def read(quarantine: Quarantine) -> tuple[Any, Any]:
        return await quarantine.case(brand, case_id), await quarantine.evidence(brand, case_id)

    case, evidence = _with_quarantine(config, endpoint, read)
    if as_json:
        print_json({"case": case, "evidence": list(evidence.values())})
        return
    click.echo(_line(case))
    for part in case.explanation:
        click.echo(
            f"  {part.feature:<10} {part.attribution:7.3f} of the score, {part.direction}, "
            f"strength {part.strength:.2f}"
        )
    for piece in evidence.values():
        for visit in piece.visits:
            who = _printable(f"{visit.visitor} {visit.agent}")
            click.echo(f"  {visit.time:.0f} {visit.asset_id} {who}")


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def release(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Count the hits of a case, and let its subject pass from now on."""
    case = _with_quarantine(config, endpoint, lambda table: table.release(brand, case_id))
    print_json(case) if as_json else click.echo(_line(case))


@quarantine.command()
@_quarantined
@click.argument("case_id", metavar="CASE")
def confirm(brand: str, endpoint: str, config: Path | None, as_json: bool, case_id: str) -> None:
    """Mark a case as spam, and withhold what its subject sends from now on."""
    case = _with_quarantine(config, endpoint, lambda table: table.confirm(brand, case_id))
    print_json(case) if as_json else click.echo(_line(case))


def _with_quarantine(
    config: Path | None, endpoint: str, work: Callable[[Quarantine], Awaitable[Any]]
) -> Any:
    import asyncio

    from page_hit_counter import pagehits_settings
    from page_hit_counter.spam.quarantine import Quarantine
    from partita.client import Client

    loaded = pagehits_settings.load(config)

    async def run() -> Any:
        client = Client(endpoint, connections=2)
        try:
            return await work(Quarantine.of(client, loaded.spam, loaded.stream))
        finally:
            await client.close()

    return asyncio.run(run())


def _line(case: SpamCase) -> str:
    score = "" if case.score is None else f", score {case.score:.2f}"
    subject = _printable(case.subject)
    return f"{case.id}  {case.status}  {case.hits} hits  {case.reason}: {subject}{score}"


def _printable(text: str) -> str:
    """Replaces characters that cannot be printed: clients choose these names, and must not send
    control sequences to the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
