"""Stage `analyze`: sizes, skew and access patterns, from the source's rows and statements.

Statements come first, because the columns by which they find rows are candidate keys. Then a sample
of each table is read. If a table cannot be read, that is noted and the others are still analyzed.
If the source goes away, the results so far are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import glob

from msgspec import Struct, field

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.understanding.analysis import Analysis, AnalysisProblem, TableAnalysis
from partita_migrate.understanding.measuring.candidate_keys import candidate_keys
from partita_migrate.understanding.measuring.example_rows import Examples, example_rows
from partita_migrate.understanding.measuring.key_heat import with_heat
from partita_migrate.understanding.measuring.percentiles import CONFIDENCE, distribution
from partita_migrate.understanding.measuring.table_figures import TableFigures
from partita_migrate.understanding.measuring.table_growth import (
    creation_column,
    growth,
    numbered_column,
)
from partita_migrate.understanding.measuring.table_sampling import (
    SAMPLE_ROWS,
    RowSample,
    SamplingMethod,
    shares,
)
from partita_migrate.understanding.patterns.access_patterns import AccessPattern, Patterns
from partita_migrate.understanding.patterns.item_counts import with_items
from partita_migrate.understanding.patterns.mining.pattern_miner import PatternMiner, RanStatement
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.mining.statement_logs import read_log
from partita_migrate.understanding.patterns.mining.statement_statistics import (
    is_of,
    kept_statements,
)
from partita_migrate.understanding.patterns.pattern_files import (
    MINED,
    WRITTEN,
    read_patterns,
    to_toml,
)
from partita_migrate.understanding.schema.inventory import Inventory, read_inventory
from partita_migrate.understanding.sources.column_reading import readings
from partita_migrate.understanding.sources.source_connection import (
    Ask,
    SourceDatabase,
    SourceError,
    connect,
)
from partita_migrate.workspace.migration_folder import ANALYSIS, Folder
from partita_migrate.workspace.stage_progress import Progress, silent

MINED_COMMENT = """\
Access patterns mined from what the database has run. `partita migrate analyze` writes this file
anew; copy it to patterns.toml to change it, and the later stages read that one."""


class AnalyzeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[analyze]` of `migration.toml`."""

    sample: int = SAMPLE_ROWS
    """The number of rows to sample from the whole database."""
    seed: int = 1
    """The seed of the sampling. The same seed draws the same keys."""
    mine: bool = True
    """True to mine statements that the database has run."""
    logs: list[str] = field(default_factory=list)
    """Log files to mine in place of the server's statistics; they may contain * as a wildcard."""
    examples: Examples = "masked"
    """Which rows to keep as examples for the drawings of the report."""


def analyze(
    folder: Folder, *, ask: Ask | None = None, progress: Progress | None = None
) -> Analysis:
    """Writes `patterns.mined.toml` and `analysis.json`. Requires the results of `plan`."""
    settings = folder.section("analyze", AnalyzeSettings)
    if not 1 <= settings.sample <= 100 * SAMPLE_ROWS:
        raise PartitaError(f"[analyze] sample must be between 1 and {100 * SAMPLE_ROWS:,} rows.")
    report = progress or silent
    inventory = read_inventory(folder)
    written = read_patterns(folder, inventory) if folder.has(WRITTEN) else Patterns()
    with connect(folder, ask=ask) as source:
        mined, problems = _mine(folder, settings, source, inventory, report)
        patterns = [*written.patterns, *mined.patterns]
        tables = _analyze_tables(folder, settings, source, inventory, patterns, problems, report)
        examples = _examples(source, inventory, settings, problems)
    analysis = _write(folder, settings, tables, problems, examples)
    if mined.origin:
        # Item counts need the sampled figures, so the file is written a second time.
        with_counts = with_items(mined, inventory, analysis)
        folder.write_toml(MINED, to_toml(with_counts), comment=MINED_COMMENT)
    return analysis


def _mine(
    folder: Folder,
    settings: AnalyzeSettings,
    source: SourceDatabase,
    inventory: Inventory,
    progress: Progress,
) -> tuple[Patterns, list[AnalysisProblem]]:
    if not settings.mine:
        return Patterns(), []
    progress("reading statements", 0, 1)
    mine = PatternMiner(SchemaLookup(inventory))
    try:
        if settings.logs:
            origin, seconds = _mine_logs(folder, settings.logs, source.database, mine)
        else:
            kept = kept_statements(source)
            origin, seconds = kept.origin, kept.window_seconds
            for ran in kept.statements:
                mine.add(ran)
    except PartitaError as error:
        if source.is_lost:
            raise
        return Patterns(), [AnalysisProblem(subject="patterns", reason=str(error))]
    patterns = mine.patterns(seconds, origin)
    # Written before the tables are sampled, so that a lost connection does not lose it.
    folder.write_toml(MINED, to_toml(patterns), comment=MINED_COMMENT)
    progress("reading statements", 1, 1)
    return patterns, []


def _mine_logs(
    folder: Folder, logs: Iterable[str], database: str, mine: PatternMiner
) -> tuple[str, float]:
    """Returns the origin of the statements, and the seconds over which they were logged."""
    first = last = None
    names: list[str] = []
    for pattern in logs:
        paths = sorted(glob(str(folder.path / pattern)))
        if not paths:
            raise PartitaError(f"[analyze] logs lists {pattern}, which does not exist.")
        for name in paths:
            names.append(name.rpartition("/")[2])
            for entry in read_log(folder.path / name):
                if entry.moment is not None:
                    first = min(first or entry.moment, entry.moment)
                    last = max(last or entry.moment, entry.moment)
                # The span counts entries of every database: a quiet database was logged for just as
                # long.
                if is_of(entry, database):
                    mine.add(RanStatement(entry.statement, 1, entry.rows, entry.examined))
    seconds = max(1.0, last - first) if first is not None and last is not None else 1.0
    return f"the statement logs {', '.join(names)}; rates are means over them", seconds


def _analyze_tables(
    folder: Folder,
    settings: AnalyzeSettings,
    source: SourceDatabase,
    inventory: Inventory,
    patterns: list[AccessPattern],
    problems: list[AnalysisProblem],
    progress: Progress,
) -> list[TableAnalysis]:
    """Analyzes the tables one after the other. Results are kept if the source goes away."""
    readable = [table for table in inventory.tables if table.is_readable]
    samples = shares(readable, settings.sample)
    analyzed: list[TableAnalysis] = []
    done, total = 0, sum(samples.values())
    for table in readable:
        share = samples[table.name]

        # Default arguments bind the values of this round of the loop.
        def watch(drawn: int, name: str = table.name, done: int = done, share: int = share) -> None:
            progress(f"sampling {name}", done + min(drawn, share), total)

        watch(0)
        sample = RowSample(source, table, [], share, settings.seed)
        try:
            analyzed.append(analyze_table(sample, patterns, watch))
        except SourceError as error:
            problems.append(AnalysisProblem(subject=table.name, reason=str(error)))
            if source.is_lost:
                _write(folder, settings, analyzed, problems)
                raise PartitaError(
                    f"{error} The figures of {len(analyzed)} of {len(readable)} tables are kept in"
                    f" {ANALYSIS}."
                ) from error
        done += share
    progress("sampling", total, total)
    return analyzed


def _examples(
    source: SourceDatabase,
    inventory: Inventory,
    settings: AnalyzeSettings,
    problems: list[AnalysisProblem],
) -> dict[str, list[Item]]:
    try:
        return example_rows(source, inventory, settings.examples)
    except SourceError as error:
        problems.append(AnalysisProblem(subject="examples", reason=str(error)))
        return {}


def _write(
    folder: Folder,
    settings: AnalyzeSettings,
    tables: list[TableAnalysis],
    problems: list[AnalysisProblem],
    examples: dict[str, list[Item]] | None = None,
) -> Analysis:
    analysis = Analysis(
        tables=tables,
        problems=problems,
        seed=settings.seed,
        sample_rows=settings.sample,
        examples=examples or {},
    )
    folder.write_json(ANALYSIS, analysis)
    return analysis


def analyze_table(
    sample: RowSample, patterns: list[AccessPattern], watch: Callable[[int], None]
) -> TableAnalysis:
    """Returns the figures of one table. `watch` receives the number of rows read so far."""
    table = sample.table
    keys = candidate_keys(table, patterns)
    sample.readings = readings(
        sample.source, table, {column for key in keys for column in key.columns}
    )
    made, numbered = creation_column(table), numbered_column(table)
    figures = TableFigures(
        readings=sample.readings,
        keys=keys,
        expected=sample.size,
        moments_of=made.name if made else None,
        numbers_of=numbered.name if numbered else None,
        seed=sample.seed,
    )
    for draws in sample.draws():
        figures.add(draws)
        watch(sample.drawn)
    rows = round(sample.rows_in_table)
    sizes = distribution(figures.sizes, sample.is_exact)
    per_day, reason = growth(table, rows, made, figures.moments, figures.numbers, patterns)
    return TableAnalysis(
        table=table.name,
        rows=rows,
        sampled=sample.drawn,
        confidence=_confidence(sample, sizes.p95_interval),
        item_bytes=sizes,
        columns=[column.figures(sample.drawn) for column in figures.columns],
        keys=[
            with_heat(key.skew(rows, sample.is_exact), table, patterns, sizes.p95) for key in keys
        ],
        growth_rows_per_day=per_day,
        growth_reason=reason,
    )


def _confidence(sample: RowSample, interval: tuple[int, int] | None) -> str:
    how = sample.method.value.format(key=sample.key)
    if not sample.drawn:
        return "The table has no rows."
    if sample.method is SamplingMethod.EVERY_ROW:
        return f"All {sample.drawn:,} rows: {how}, the figures are exact."
    assert interval is not None
    return (
        f"{sample.drawn:,} {how}: with {CONFIDENCE:.0%} confidence the 95th percentile of all"
        f" items lies between {interval[0]:,} and {interval[1]:,} bytes, and at most"
        f" {_rule_of_three(sample.drawn)} of them are larger than the largest seen."
    )


def _rule_of_three(drawn: int) -> str:
    """Returns the rule of three: with 95% confidence, what n draws did not show has a share of at
    most 3 / n."""
    return f"{min(100.0, 300 / max(drawn, 1)):.2g}%"
