"""The commands from the source to a proven design: plan, analyze, model, estimate, test, report,
create."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from partita_migrate.commands.command_group import (
    checked_url,
    migrate,
    password_prompt,
    show,
    stage,
    stage_run,
)


@migrate.command()
@stage
def plan(path: Path, as_json: bool) -> None:
    """Find out what the source holds, what suits DynamoDB, and what is difficult.

    Writes inventory.json, plan.json and plan.md: tables and their relationships, candidates with
    reasons, difficulties with their remedies, and the backup and recovery plan.
    """
    with stage_run(path) as (folder, progress):
        from partita_migrate.report.terminal.plan_screen import summarize
        from partita_migrate.understanding.plan_stage import plan as run

        planned = run(folder, ask=password_prompt(), progress=progress)
    show(as_json, planned, lambda: summarize(folder, planned))


@migrate.command()
@stage
def analyze(path: Path, as_json: bool) -> None:
    """Measure item sizes and key skew, and mine the access patterns.

    Writes analysis.json from sampled rows, and patterns.mined.toml from the statements that the
    database has run. Write patterns.toml to state the patterns yourself.
    """
    with stage_run(path) as (folder, progress):
        from partita_migrate.report.terminal.analyze_screen import summarize
        from partita_migrate.understanding.analyze_stage import analyze as run

        analysis = run(folder, ask=password_prompt(), progress=progress)
    show(as_json, analysis, lambda: summarize(folder, analysis))


@migrate.command()
@stage
@click.option("--check", is_flag=True, help="Verify a model file instead of proposing designs.")
@click.option("--file", "name", default="model.toml", help="The file that --check verifies.")
@click.option("--workbench", is_flag=True, help="Also write files for NoSQL Workbench.")
def model(path: Path, as_json: bool, check: bool, name: str, workbench: bool) -> None:
    """Propose designs that serve every pattern, and compare them.

    Writes model.denormalized.toml and model.single-table.toml. The chosen design becomes
    model.toml, unless that file exists; it is yours to change. --check exits with 1 when a model
    has errors.
    """
    if check:
        _check(path, as_json, name)
        return
    with stage_run(path) as (folder, progress):
        from partita_migrate.designing.model_stage import model as run
        from partita_migrate.report.terminal.model_screen import summarize

        models = run(folder, workbench=workbench, progress=progress)
    show(as_json, models, lambda: summarize(models))


def _check(path: Path, as_json: bool, name: str) -> None:
    with stage_run(path) as (folder, _):
        from partita_migrate.designing.model_stage import check as run
        from partita_migrate.report.terminal.model_screen import summarize_check

        findings = run(folder, name)
    show(as_json, findings, lambda: summarize_check(name, findings))
    if any(finding.severity == "error" for finding in findings):
        sys.exit(1)


@migrate.command()
@stage
@click.option("--model", "name", default=None, help="Estimate only this model file.")
@click.option(
    "--prices",
    default=None,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A price list to use in place of the built-in one.",
)
def estimate(path: Path, as_json: bool, name: str | None, prices: Path | None) -> None:
    """Estimate the capacity, the storage and the monthly bill of each model.

    Writes estimate.json and estimate.csv.
    """
    with stage_run(path) as (folder, progress):
        from partita_migrate.costing.estimate_stage import estimate as run
        from partita_migrate.report.terminal.estimate_screen import summarize

        estimates = run(folder, name=name, prices=prices, progress=progress)
    show(as_json, estimates, lambda: summarize(estimates))


@migrate.command()
@stage
@click.option("--model", "name", default="model.toml", help="The model file to test.")
@click.option("--endpoint", default=None, help="A server to test on instead of a private one.")
@click.option("--all", "is_all", is_flag=True, help="Load every row, not a sample.")
@click.option(
    "--sample",
    default=None,
    type=click.IntRange(1),
    help="The maximum number of rows to load from each table.",
)
@click.option("--resume", "is_resumed", is_flag=True, help="Continue a run that was stopped.")
def test(
    path: Path,
    as_json: bool,
    name: str,
    endpoint: str | None,
    is_all: bool,
    sample: int | None,
    is_resumed: bool,
) -> None:
    """Prove a model on the source's own rows.

    Loads them into a private server, runs every pattern on both sides, and compares rows, order,
    limit and paging. Writes test.json, and a dated copy of each run in tests/. Exits with 1 when a
    pattern differs or a key is wrong.
    """
    with stage_run(path) as (folder, progress):
        from partita_migrate.proving.prove import test as run
        from partita_migrate.report.terminal.test_screen import summarize

        tested = run(
            folder,
            name=name,
            endpoint=endpoint,
            is_all=is_all,
            sample=sample,
            is_resumed=is_resumed,
            ask=password_prompt(),
            progress=progress,
        )
    show(as_json, tested, lambda: summarize(tested))
    if not tested.is_passed:
        sys.exit(1)


@migrate.command()
@stage
def report(path: Path, as_json: bool) -> None:
    """Write one page for the people who decide.

    Writes report.html, a single file with diagram, sizes, models with example items, bill and
    risks. If a stage has not been run, the page says so.
    """
    with stage_run(path) as (folder, progress):
        from partita_migrate.report.report_page import report as run
        from partita_migrate.report.terminal.report_screen import summarize

        written = run(folder, progress=progress)
    show(as_json, written, lambda: summarize(folder, written))


@migrate.command()
@stage
@click.option("--model", "name", default="model.toml", help="The model file to take.")
@click.option(
    "--endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    metavar="URL",
    callback=checked_url,
    help="Where to create the tables, such as http://127.0.0.1:8000.",
)
@click.option(
    "--region",
    envvar=["AWS_REGION", "AWS_DEFAULT_REGION"],
    default="us-east-1",
    show_default=True,
    help="The region to sign for.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--update", is_flag=True, help="Change tables that differ, as far as possible.")
@click.option(
    "--emit",
    "formats",
    multiple=True,
    type=click.Choice(["cloudformation", "terraform", "cdk", "boto3", "cli"]),
    help="Write the tables for another tool instead; can be repeated.",
)
def create(
    path: Path,
    as_json: bool,
    name: str,
    endpoint: str | None,
    region: str,
    dry_run: bool,
    update: bool,
    formats: tuple[str, ...],
) -> None:
    """Create the tables of a design, or write them for another tool.

    Existing tables are compared with the design and stay as they are; exits with 1 when one
    differs. Capacity, class and recovery come from the estimate; change them in [create].
    """
    if formats:
        _emit(path, as_json, name, formats)
        return
    if endpoint is None:
        raise click.UsageError(
            "Give --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or write with --emit."
        )
    with stage_run(path) as (folder, progress):
        from partita_migrate.handover.create_stage import create as run
        from partita_migrate.report.terminal.create_screen import summarize

        created = run(
            folder,
            endpoint,
            name=name,
            region=region,
            is_dry_run=dry_run,
            update=update,
            progress=progress,
        )
    show(as_json, created, lambda: summarize(created))
    if created.differs:
        sys.exit(1)


def _emit(path: Path, as_json: bool, name: str, formats: tuple[str, ...]) -> None:
    with stage_run(path) as (folder, _):
        from partita_migrate.handover.emit import emit as run
        from partita_migrate.report.terminal.create_screen import summarize_emitted

        emitted = run(folder, formats, name)
    show(as_json, emitted, lambda: summarize_emitted(emitted))
