"""Writes the plan as Markdown for people; the order is the same in every run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partita.foundation.service_limits import GB, KB, MB
from partita_migrate.understanding.planning.difficulties.difficulty import (
    SEVERITIES,
    Difficulty,
    number_of,
)
from partita_migrate.understanding.planning.goals import AIMS
from partita_migrate.understanding.planning.migration_plan import MigrationPlan
from partita_migrate.understanding.schema.inventory import Inventory, Relationship, SourceTable

SEVERITY_TITLES = {
    "obstacle": "Obstacles: to be solved first",
    "care": "Needs a decision",
    "note": "Good to know",
}
PHASE_TITLES = {
    "before": "Before the migration",
    "during": "During the migration",
    "parallel": "Both databases in parallel",
    "cutover": "Cutover",
    "way back": "The way back",
}


def plan_page(inventory: Inventory, plan: MigrationPlan) -> str:
    sections = (
        _source(inventory, plan),
        _goals(plan),
        _candidates(plan),
        _tables(inventory),
        _relationships(inventory, plan),
        _challenges(plan),
        _difficulties(plan),
        _recovery(plan),
    )
    return "\n".join(line for section in sections for line in section)


def bytes_text(count: int | None) -> str:
    if count is None:
        return "unknown"
    for unit, size in (("GB", GB), ("MB", MB), ("KB", KB)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


def rows_text(table: SourceTable) -> str:
    return f"{table.row_count:,}" if table.is_row_count_exact else f"about {table.row_count:,}"


def relationship_text(relationship: Relationship) -> str:
    """Describes one relationship in words."""
    optional = ", optional" if relationship.is_optional else ""
    parent = f"{relationship.parent} ({', '.join(relationship.parent_columns)})"
    child = f"{relationship.child} ({', '.join(relationship.child_columns)})"
    if relationship.through is not None:
        return (
            f"{relationship.parent} and {relationship.child}: {relationship.kind}"
            f" through {relationship.through} ({', '.join(relationship.parent_columns)};"
            f" {', '.join(relationship.child_columns)})"
        )
    return f"{parent} to {child}: {relationship.kind}{optional}"


def _source(inventory: Inventory, plan: MigrationPlan) -> Iterator[str]:
    data_bytes = sum(table.data_bytes or 0 for table in inventory.tables)
    rows = sum(table.row_count for table in inventory.tables)
    yield f"# Migration plan: {inventory.database}"
    yield ""
    yield (
        f"{inventory.dialect} {inventory.server_version}:"
        f" {number_of(len(inventory.tables), 'table')}, {number_of(rows, 'row')},"
        f" {bytes_text(data_bytes)}; through"
        f" {plan.goals.bandwidth_mbit_per_second:g} Mbit/s they take"
        f" {_hours(plan.transfer_hours)}."
    )
    yield ""


def _hours(hours: float) -> str:
    minutes = hours * 60
    if minutes < 1:
        return "less than a minute"
    return f"{minutes:,.0f} minutes" if hours < 2 else f"{hours:,.1f} hours"


def _goals(plan: MigrationPlan) -> Iterator[str]:
    yield "## Goals"
    yield ""
    yield from (f"- {text}" for aim, text in AIMS.items() if aim in plan.goals.aims)
    yield ""
    if plan.goals.notes:
        yield plan.goals.notes.strip()
        yield ""


def _candidates(plan: MigrationPlan) -> Iterator[str]:
    yield "## Candidates"
    yield ""
    for candidate in plan.candidates:
        yield f"- **{_cell(candidate.table)}**: {candidate.score}, {candidate.verdict}"
        yield from (f"  - {reason.points:+d} {reason.text}" for reason in candidate.reasons)
    yield ""


def _tables(inventory: Inventory) -> Iterator[str]:
    yield "## Tables"
    yield ""
    yield from _grid(
        ("table", "rows", "bytes", "columns", "primary key", "indexes"),
        (
            (
                table.name,
                rows_text(table),
                bytes_text(table.data_bytes),
                str(len(table.columns)),
                ", ".join(table.primary_key) or "none",
                str(len(table.indexes)),
            )
            for table in inventory.tables
        ),
    )
    if not all(table.is_row_count_exact for table in inventory.tables):
        yield '"about": estimated by the server; counting would read too much.'
        yield ""


def _relationships(inventory: Inventory, plan: MigrationPlan) -> Iterator[str]:
    yield "## Relationships"
    yield ""
    yield from (
        f"- {_cell(relationship_text(relationship))}" for relationship in inventory.relationships
    )
    if not inventory.relationships:
        yield "None are declared."
    yield ""
    related = [members for members in plan.groups if len(members) > 1]
    if related:
        yield "Best moved together:"
        yield ""
        yield from (f"- {_cell(', '.join(members))}" for members in related)
        yield ""


def _challenges(plan: MigrationPlan) -> Iterator[str]:
    yield "## Challenges that decide the strategy"
    yield ""
    yield from _grid(
        ("challenge", "strategy"),
        ((challenge.what, challenge.strategy) for challenge in plan.challenges),
    )


def _difficulties(plan: MigrationPlan) -> Iterator[str]:
    yield "## Difficulties"
    yield ""
    for severity in SEVERITIES:
        difficulties = [
            difficulty for difficulty in plan.difficulties if difficulty.severity == severity
        ]
        if difficulties:
            yield f"### {SEVERITY_TITLES[severity]}"
            yield ""
            yield from _by_strategy(difficulties)
            yield ""


def _by_strategy(difficulties: list[Difficulty]) -> Iterator[str]:
    """Groups difficulties that have the same strategy."""
    by_strategy: dict[tuple[str, str], list[Difficulty]] = {}
    for difficulty in sorted(difficulties, key=lambda difficulty: difficulty.kind):
        by_strategy.setdefault((difficulty.kind, difficulty.strategy), []).append(difficulty)
    for (kind, strategy), members in by_strategy.items():
        yield f"- **{kind}**: {_cell(strategy)}"
        yield from (f"  - {_cell(member.what)}" for member in members)


def _recovery(plan: MigrationPlan) -> Iterator[str]:
    yield "## Backup and recovery"
    for phase, title in PHASE_TITLES.items():
        steps = [step for step in plan.recovery if step.phase == phase]
        if not steps:
            continue
        yield ""
        yield f"### {title}"
        yield ""
        for number, step in enumerate(steps, start=1):
            yield f"{number}. {_cell(step.text)}"
            if step.command:
                yield ""
                yield f"       {step.command}"
                yield ""
            if step.blocked_by:
                yield "   Not possible on this server yet:"
                yield from (f"   - {_cell(text)}" for text in step.blocked_by)
                yield ""
    yield ""


def _grid(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)
    yield ""


def _cell(text: str) -> str:
    """Escapes characters of a name that Markdown would interpret."""
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")
