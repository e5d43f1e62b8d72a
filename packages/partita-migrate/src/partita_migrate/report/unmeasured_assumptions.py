"""Lists what the report does not know, so that nobody mistakes an assumption for a measurement."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.report.folder_contents import FolderContents, is_outdated
from partita_migrate.understanding.patterns.pattern_files import WRITTEN
from partita_migrate.workspace.readable_lists import first_names, number_of

NAMES_MAX = 8


def find_unknowns(contents: FolderContents) -> list[str]:
    """Returns the unknowns, one sentence each."""
    looks = (_files, _rows, _samples, _expectations, _patterns, _statistics, _prices)
    return [sentence for look in looks for sentence in look(contents)]


def _files(contents: FolderContents) -> Iterator[str]:
    for one in contents.missing:
        yield f"{one.why} Run `{one.command}`."
    yield from contents.problems
    for model in contents.models:
        if is_outdated(model, contents):
            yield (
                f"The estimate of {model.file} was made before the model or the patterns changed;"
                " run `partita migrate estimate` again."
            )


def _rows(contents: FolderContents) -> Iterator[str]:
    if contents.inventory is None:
        return
    for one in contents.inventory.skipped:
        yield f"{one.name} is not in this report: {one.reason}."
    guessed = [table.name for table in contents.inventory.tables if not table.is_row_count_exact]
    if guessed:
        yield (
            f"Rows of {number_of(len(guessed), 'table')} are the server's estimate, not a count:"
            f" {first_names(guessed, NAMES_MAX)}."
        )


def _samples(contents: FolderContents) -> Iterator[str]:
    if contents.analysis is None:
        return
    for problem in contents.analysis.problems:
        yield f"{problem.subject} could not be analyzed: {problem.reason}"
    sampled = [table.table for table in contents.analysis.tables if table.item_bytes.p95_interval]
    if sampled:
        yield (
            f"Sizes and skew of {number_of(len(sampled), 'table')} come from a sample, with the"
            f" confidence that the section on sizes states: {first_names(sampled, NAMES_MAX)}."
        )
    empty = [table.table for table in contents.analysis.tables if not table.sampled]
    if empty:
        yield f"Empty tables could not be measured: {first_names(empty, NAMES_MAX)}."


def _expectations(contents: FolderContents) -> Iterator[str]:
    for name, expected in contents.expect.items():
        measured = contents.analysis.table(name) if contents.analysis else None
        if expected.rows is not None:
            comparison = f" instead of the {measured.rows:,} that were found" if measured else ""
            yield (
                f"{name} is estimated with {expected.rows:,.0f} rows{comparison}, as migration.toml"
                " says."
            )
        if expected.item_kb is not None:
            comparison = f" instead of {measured.item_bytes.p95 / 1024:,.2f} KB" if measured else ""
            yield (
                f"Items of {name} are estimated with {expected.item_kb:g} KB{comparison}, as"
                " migration.toml says."
            )


def _patterns(contents: FolderContents) -> Iterator[str]:
    patterns = contents.patterns
    if contents.inventory is None:
        return
    if not patterns.patterns:
        yield (
            f"There are no access patterns: write {WRITTEN}, or let the server keep statement"
            " statistics and run `partita migrate analyze` again. A model without patterns serves"
            " nothing."
        )
    elif any(pattern.source == "written" for pattern in patterns.patterns):
        yield f"Rates are as {WRITTEN} states them; they were not measured."
    if patterns.origin:
        yield f"Patterns were mined from {patterns.origin.rstrip('.')}."
    if patterns.references:
        yield (
            "Statements join columns without a foreign key; if these are references, name them in"
            f" [source]: {first_names(patterns.references, NAMES_MAX)}."
        )
    if patterns.unexplained:
        yield (
            f"{number_of(len(patterns.unexplained), 'statement')} that the database has run could"
            " not be turned into patterns, so no model serves them; the section on patterns has"
            " the reasons."
        )


def _statistics(contents: FolderContents) -> Iterator[str]:
    """Yields statements and tables whose mined rates are too high, or missing."""
    mined = [pattern for pattern in contents.patterns.patterns if pattern.source == "mined"]
    if not mined or contents.inventory is None:
        return
    tables_used = {one.table for one in mined}
    rewritten = [
        table.name
        for table in contents.inventory.tables
        if table.rules and table.name in tables_used
    ]
    if rewritten:
        yield (
            "Calls may be counted too often: rules turn one statement into several, and the server"
            f" counts each of them. This affects {first_names(rewritten, NAMES_MAX)}."
        )
    triggered = [table.name for table in contents.inventory.tables if table.triggers]
    if triggered:
        yield (
            "Calls may be counted too often: statements of triggers and functions are counted like"
            f" those of the application. There are triggers on {first_names(triggered, NAMES_MAX)}."
        )
    read = {one.table for one in mined if one.operation in ("read", "aggregate")}
    joined = sorted({name for one in mined for name in one.joins} - read)
    if joined:
        yield (
            "Tables that are only read through joins have no read rate of their own (it is part of"
            f" the patterns that join them): {first_names(joined, NAMES_MAX)}."
        )
    filled = [one.table for one in mined if one.operation == "insert" and not one.calls_per_second]
    if filled:
        yield (
            "Inserts are estimated with a rate of 0, because the counted statements were the ones"
            f" that filled the table: {first_names(filled, NAMES_MAX)}. Put the rates that you"
            f" expect into {WRITTEN}; until then their writes cost nothing in the bill."
        )
    never = [one.name for one in mined if one.operation != "insert" and not one.calls_per_second]
    if never:
        yield (
            "Patterns without a rate have no cost in the bill:"
            f" {first_names(never, NAMES_MAX, '; ')}."
        )


def _prices(contents: FolderContents) -> Iterator[str]:
    if contents.estimates is not None:
        yield (
            f"Prices are those of {contents.estimates.prices_of}, without taxes, discounts, support"
            " and data transfer."
        )
