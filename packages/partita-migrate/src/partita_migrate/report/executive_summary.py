"""The summary for the people who decide: what moves, what it costs, what can go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from partita.foundation.service_limits import GB
from partita_migrate.costing.amounts import amount, money
from partita_migrate.costing.estimate_stage import monthly
from partita_migrate.report.folder_contents import FolderContents, ReportedDesign
from partita_migrate.report.risk_register import Risk
from partita_migrate.report.verdict import Verdict, decide
from partita_migrate.understanding.planning.plan_page import bytes_text
from partita_migrate.understanding.planning.suitability import Verdict as Suits
from partita_migrate.workspace.readable_lists import enumerated, first_names, number_of

RISKS_MAX = 5
VERDICTS: dict[Suits, str] = {
    "good candidate": "suit well",
    "possible": "are possible",
    "poor candidate": "suit badly",
}
NAMES_MAX = 6


class Headline(Struct, frozen=True, kw_only=True):
    label: str
    value: str
    detail: str


class ExecutiveSummary(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    headlines: list[Headline]
    moves: list[str]
    costs: list[str]
    risks: list[Risk]


def summarize(contents: FolderContents, risks: list[Risk]) -> ExecutiveSummary:
    return ExecutiveSummary(
        verdict=decide(contents),
        headlines=list(_headlines(contents, risks)),
        moves=list(_moves(contents)),
        costs=list(_costs(contents)),
        risks=[risk for risk in risks if risk.severity != "note"][:RISKS_MAX],
    )


def _headlines(contents: FolderContents, risks: list[Risk]) -> Iterator[Headline]:
    inventory, chosen = contents.inventory, contents.chosen
    if inventory:
        data_bytes = sum(table.data_bytes or 0 for table in inventory.tables)
        rows = sum(table.row_count for table in inventory.tables)
        size = f", {bytes_text(data_bytes)}" if data_bytes else ""
        yield Headline(
            label="Source",
            value=number_of(len(inventory.tables), "table"),
            detail=f"{number_of(rows, 'row')}{size}",
        )
    if chosen:
        tables = len(chosen.design.tables)
        indexes = sum(len(table.indexes) for table in chosen.design.tables)
        yield Headline(
            label="Becomes",
            value=number_of(tables, "table"),
            detail=f"{_indexes(indexes)}, {_served(contents, chosen)}",
        )
    if chosen and chosen.estimate:
        bill = chosen.estimate.bill
        yield Headline(
            label="Costs a month",
            value=money(monthly(chosen.estimate), bill.currency),
            detail=f"{bill.cheapest.name}, {bill.cheapest.table_class}, {bill.region}"
            if contents.patterns.patterns
            else "storage only: there are no patterns",
        )
    counts = Counter(risk.severity for risk in risks for _ in risk.what)
    if contents.plan:
        yield Headline(
            label="In the way",
            value=number_of(counts["obstacle"], "obstacle"),
            detail=f"{number_of(counts['care'], 'point')} to decide",
        )


def _indexes(count: int) -> str:
    return "no index" if not count else "1 index" if count == 1 else f"{count} indexes"


def _served(contents: FolderContents, model: ReportedDesign) -> str:
    """Counts the patterns by their proof. A pattern without proof does not count as served."""
    patterns = {pattern.name for pattern in contents.patterns.patterns}
    if not patterns:
        return "no patterns"
    requested = patterns & {access.pattern for access in model.design.access}
    lacking = len(patterns) - len(requested)
    proven = sum(contents.proof(name) == "proven" for name in requested)
    parts = [f"{proven} of {len(patterns)} patterns proven"]
    if unproven := len(requested) - proven:
        parts.append(f"{unproven} unproven")
    if lacking:
        parts.append(f"{lacking} without a request")
    return ", ".join(parts)


def _moves(contents: FolderContents) -> Iterator[str]:
    if contents.plan:
        verdicts = Counter(candidate.verdict for candidate in contents.plan.candidates)
        counts = [f"{count:,} {VERDICTS[verdict]}" for verdict, count in verdicts.items()]
        yield f"Of the tables, {enumerated(counts)}."
        poor = [
            candidate.table
            for candidate in contents.plan.candidates
            if candidate.verdict == "poor candidate"
        ]
        if poor:
            yield (
                "Better left where they are, or moved to another service:"
                f" {first_names(poor, NAMES_MAX)}."
            )
    if contents.chosen:
        design = contents.chosen.design
        names = [table.name for table in design.tables]
        same = f", a copy of {contents.chosen.same_as}" if contents.chosen.same_as else ""
        yield (
            f"The chosen design ({contents.chosen.file}{same}) is"
            f" {'one overloaded table' if design.kind == 'single-table' else 'denormalized'}:"
            f" {first_names(names, NAMES_MAX)}."
        )
        if design.left_out:
            yield (
                f"{number_of(len(design.left_out), 'column')} stay behind, each with its reason:"
                f" {first_names([one.column for one in design.left_out], NAMES_MAX)}."
            )
    if contents.comparison and contents.comparison.why:
        why = contents.comparison.why
        yield f"Recommended is {contents.comparison.recommended}: {why[0].lower()}{why[1:]}"


def _costs(contents: FolderContents) -> Iterator[str]:
    estimate = contents.chosen.estimate if contents.chosen else None
    if estimate is None:
        return
    bill = estimate.bill
    cheapest = bill.cheapest
    extras = f", with {enumerated([one.name for one in bill.extras])}" if bill.extras else ""
    stored = bytes_text(round(estimate.stored_gb * GB))
    yield (
        f"{money(monthly(estimate), bill.currency)} a month, paid {cheapest.name} in the class"
        f" {cheapest.table_class}{extras}: {amount(estimate.read_units, 6)} read and"
        f" {amount(estimate.write_units, 6)} write units, {stored}."
    )
    if not contents.patterns.patterns:
        yield "That is storage only: without access patterns, the requests are unknown."
    minutes = contents.patterns.window_seconds / 60
    # Rates of less than an hour's log miss every daily peak.
    if 0 < minutes < 60:
        yield (
            f"The rates come from {minutes:,.0f} minutes of statements, which say little about a"
            " month: put the rates that you expect into patterns.toml."
        )
    for name, expected in contents.expect.items():
        if expected.rows is not None:
            yield f"That is for {expected.rows:,.0f} rows of {name}, as migration.toml expects."
    on_demand = bill.option("on-demand").monthly + bill.extras_monthly
    bound = min(
        (option for option in bill.options if option.upfront),
        key=lambda option: option.monthly,
        default=None,
    )
    yield (
        f"On-demand, without capacity planning, it costs {money(on_demand, bill.currency)} a month."
    )
    if bound and bound.monthly < cheapest.monthly:
        yield (
            f"{bound.name.capitalize()}, it costs"
            f" {money(bound.monthly + bill.extras_monthly, bill.currency)} a month, with"
            f" {money(bound.upfront, bill.currency)} paid upfront."
        )
    if bill.one_time:
        load = min(bill.one_time[:2], key=lambda one: one.monthly)
        yield f"One-time cost: {load.name}, {money(load.monthly, bill.currency)}."
    if estimate.doubled:
        most = max(estimate.doubled, key=lambda one: one.provisioned_more)
        if most.provisioned_more >= 0.005:
            yield (
                f"The {most.what} matters most: twice as much costs"
                f" {money(most.provisioned_more, bill.currency)} more a month."
            )
