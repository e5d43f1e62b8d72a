"""`partita pagehits keys` and `sign`: the keys of signed visits, and a signature to try them."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def keys() -> None:
    """Manage the keys with which a site signs its visits."""


@keys.command()
@click.argument("file", type=FILE)
@click.option("--days", default=30.0, show_default=True, type=click.FloatRange(0.01, 3650))
@click.option(
    "--overlap-hours",
    default=24.0,
    show_default=True,
    type=click.FloatRange(0, 8760),
    help="How long older keys stay valid.",
)
def rotate(file: Path, days: float, overlap_hours: float) -> None:
    """Add a new key to FILE, let older keys end, and drop those that have ended."""
    from page_hit_counter.processing.visit_signatures import read_keys, rotated, write_keys
    from partita.foundation.clock import system_clock

    old_keys = list(read_keys(file).values()) if file.exists() else []
    changed = rotated(old_keys, system_clock(), days, overlap_hours)
    write_keys(file, changed)
    for key in changed:
        click.echo(f"{key.id}  since {key.since}  until {key.until}")


@click.command()
@click.argument("file", type=FILE)
@click.option("--visit", required=True, help="An id that no other visit has.")
@click.option("--asset", required=True, type=click.IntRange(1))
@click.option("--time", type=click.IntRange(0), help="Seconds since the epoch; now by default.")
def sign(file: Path, visit: str, asset: int, time: int | None) -> None:
    """Print the signature of a visit by the newest key in FILE."""
    from page_hit_counter.processing import visit_signatures
    from partita.foundation.clock import system_clock

    moment = int(system_clock()) if time is None else time
    key = visit_signatures.current_key(visit_signatures.read_keys(file).values(), moment)
    click.echo(visit_signatures.sign(key, visit, asset, moment))
