"""What the report does not know, so that nobody takes an assumption for a measurement."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.report.folder_contents import FolderContents, is_outdated
from partita_migrate.understanding.patterns.pattern_files import WRITTEN
from partita_migrate.understanding.planning.difficulties.difficulty import number_of

NAMES_MAX = 8


def find_unknowns(contents: FolderContents) -> list[str]:
    """A sentence each."""
    looks = (_files, _rows, _samples, _expectations, _patterns, _statistics, _prices)
    return [sentence for look in looks for sentence in look(contents)]


def _files(contents: FolderContents) -> Iterator[str]:
    for one in contents.missing:
        yield f"{one.why} `{one.command}` does that."
    yield from contents.problems
    for model in contents.models:
        if is_outdated(model, contents):
            yield (
                f"The estimate of {model.file} was made before the model or the patterns changed;"
                " `partita migrate estimate` makes it anew."
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
            f" {_some(guessed)}."
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
            f" confidence that the section on sizes states: {_some(sampled)}."
        )
    empty = [table.table for table in contents.analysis.tables if not table.sampled]
    if empty:
        yield f"Without rows there is nothing to measure: {_some(empty)}."


def _expectations(contents: FolderContents) -> Iterator[str]:
    for name, expected in contents.expect.items():
        measured = contents.analysis.table(name) if contents.analysis else None
        if expected.rows is not None:
            found = f" instead of the {measured.rows:,} that were found" if measured else ""
            yield (
                f"{name} is reckoned with {expected.rows:,.0f} rows{found}, as migration.toml says."
            )
        if expected.item_kb is not None:
            found = f" instead of {measured.item_bytes.p95 / 1024:,.2f} KB" if measured else ""
            yield (
                f"Items of {name} are reckoned with {expected.item_kb:g} KB{found}, as"
                " migration.toml says."
            )


def _patterns(contents: FolderContents) -> Iterator[str]:
    found = contents.patterns
    if contents.inventory is None:
        return
    if not found.patterns:
        yield (
            f"No access patterns are known: write {WRITTEN}, or let the server keep its"
            " statements and run `partita migrate analyze` again. Without them a model serves"
            " nobody."
        )
    elif any(pattern.source == "written" for pattern in found.patterns):
        yield f"Rates are as {WRITTEN} states them; nobody has measured them."
    if found.origin:
        yield f"Patterns were mined from {found.origin.rstrip('.')}."
    if found.references:
        yield (
            "Statements join what no foreign key connects; as far as these are references, [source]"
            f" has to name them: {_some(found.references)}."
        )
    if found.unexplained:
        yield (
            f"Not among the patterns, and so served by no model:"
            f" {number_of(len(found.unexplained), 'statement')} that the database has run; the"
            " section on patterns has the reasons."
        )


def _statistics(contents: FolderContents) -> Iterator[str]:
    """What mined rates count too often, or not at all."""
    mined = [pattern for pattern in contents.patterns.patterns if pattern.source == "mined"]
    if not mined or contents.inventory is None:
        return
    asked = {one.table for one in mined}
    rewritten = [
        table.name for table in contents.inventory.tables if table.rules and table.name in asked
    ]
    if rewritten:
        yield (
            "Calls may be counted too often: rules turn one statement into several, and the server"
            f" counts each of them. That concerns {_some(rewritten)}."
        )
    triggered = [table.name for table in contents.inventory.tables if table.triggers]
    if triggered:
        yield (
            "Calls may be counted too often: what triggers and functions run is counted like the"
            f" statements of the application. Triggers are on {_some(triggered)}."
        )
    read = {one.table for one in mined if one.operation in ("read", "aggregate")}
    joined = sorted({name for one in mined for name in one.joins} - read)
    if joined:
        yield (
            "Read through joins only, and so without a rate of reads of their own (these are in the"
            f" patterns that join them): {_some(joined)}."
        )
    filled = [one.table for one in mined if one.operation == "insert" and not one.calls_per_second]
    if filled:
        yield (
            "Inserts are reckoned with a rate of 0, because the statements that were counted filled"
            f" the table: {_some(filled)}. Put the rates that you expect into {WRITTEN}; until then"
            " their writes cost nothing in the bill."
        )
    never = [one.name for one in mined if one.operation != "insert" and not one.calls_per_second]
    if never:
        yield f"Without a rate, and so without a cost: {_some(never, '; ')}."


def _prices(contents: FolderContents) -> Iterator[str]:
    if contents.estimates is not None:
        yield (
            f"Prices are those of {contents.estimates.prices_of}; taxes, discounts, support and"
            " transfer are not in them."
        )


def _some(names: list[str], between: str = ", ") -> str:
    """Names of patterns hold commas."""
    more = len(names) - NAMES_MAX
    return between.join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
