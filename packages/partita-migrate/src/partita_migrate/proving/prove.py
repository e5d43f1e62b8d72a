"""Stage `test`: runs a design's requests on a server and the statements on the source, and
compares."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.designing.requests.read_planner import ReadPlanner
from partita_migrate.model.design import Design, PatternAccess
from partita_migrate.model.design_findings import subject_of
from partita_migrate.model.model_files import CHOSEN, read_design
from partita_migrate.model.proofs import RUNS, TEST, Verdict, fingerprint
from partita_migrate.model.unknown_names import find_unknown_names
from partita_migrate.model.volumes import Volumes, read_volumes
from partita_migrate.proving.nonfunctional_checks.capacity_rehearsal import CapacityRehearsal
from partita_migrate.proving.nonfunctional_checks.concurrency_checks import load_checks
from partita_migrate.proving.nonfunctional_checks.restore_checks import recovery_checks
from partita_migrate.proving.parameter_sets.collation_variants import collation_problems
from partita_migrate.proving.parameter_sets.matching_rows import matching_rows
from partita_migrate.proving.parameter_sets.parameter_draw import ParameterDraw
from partita_migrate.proving.proof_run.model_file_lines import ModelLines
from partita_migrate.proving.proof_run.proof_results import (
    KeyProblem,
    PatternProof,
    ProofCheck,
    ProofRun,
    ProofSummary,
)
from partita_migrate.proving.proof_run.proof_settings import ProofSettings
from partita_migrate.proving.proof_run.unfinished_run import (
    AcknowledgedItems,
    RunHead,
    UnfinishedRun,
)
from partita_migrate.proving.proof_run.user_acceptance import user_acceptance
from partita_migrate.proving.read_proofs.read_proof import ReadProof
from partita_migrate.proving.sandbox.design_tables import (
    create_tables,
    delete_table,
    list_tables,
    put_all,
)
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient, private_server
from partita_migrate.proving.sandbox.row_sampling import sample as sampled_rows
from partita_migrate.proving.sandbox.source_copy import CopyNotPossible, private_copy
from partita_migrate.proving.sandbox.source_snapshot import SourceSnapshot
from partita_migrate.proving.staged_items import StagedItems
from partita_migrate.proving.write_proofs.write_proof import WriteProof
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.sources.source_connection import SourceDatabase, connect
from partita_migrate.understanding.statements.pattern_statements import PatternStatements
from partita_migrate.understanding.statements.resolved_statements import (
    Modification,
    NotExact,
    ResolvedQuery,
)
from partita_migrate.workspace.migration_folder import Folder
from partita_migrate.workspace.stage_progress import Progress, silent

ALL_ROWS_MAX = 200_000
"""A source with more rows is sampled, unless `--all` asks for every row."""
SAMPLE_ROWS = 1000
STAGED_ROWS = "rows.db"
"""The name differs from older versions, whose file had another layout: their runs read the rows
again."""
WRITE_ROWS = 30
"""Rows of each table in the private copy that writes run on."""
STATEMENT_SECONDS_MAX = 3600
"""Reading a whole table may take an hour."""


@dataclass(frozen=True)
class DesignClaim:
    """A design, and what it is proven on."""

    folder: Folder
    name: str
    design: Design
    patterns: list[AccessPattern]
    volumes: Volumes

    @property
    def inventory(self) -> Inventory:
        return self.volumes.inventory

    @property
    def tables(self) -> list[SourceTable]:
        return [table for table in self.inventory.tables if table.is_readable and table.columns]


@dataclass(frozen=True)
class ProofServer:
    """The server that a design is proven on, with a prefix of table names and a folder for
    temporary files."""

    server: DynamoDBClient
    address: str
    prefix: str
    space: Path


def test(
    folder: Folder,
    *,
    name: str = CHOSEN,
    endpoint: str | None = None,
    is_all: bool = False,
    sample: int | None = None,
    is_resumed: bool = False,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> ProofRun:
    """Proves a design: makes items of the source's rows, loads them, and compares the answers of
    every statement.

    `sample` is the number of rows of each table, `is_all` takes every row, and `is_resumed` reuses
    what a stopped run has finished.
    """
    started = time.monotonic()
    claim = _read_claim(folder, name)
    with (
        connect(folder, ask) as source,
        source.limit(STATEMENT_SECONDS_MAX),
        SourceSnapshot(source, claim.inventory) as snapshot,
    ):
        counts = _count_rows(claim, source)
        is_whole = is_all or (sample is None and sum(counts.values()) <= ALL_ROWS_MAX)
        path = folder.path / RUNS / f"unfinished.{name.removesuffix('.toml')}.jsonl"
        head = RunHead(
            fingerprint=fingerprint(claim.design),
            source=str(source.address),
            is_all=is_whole,
            rows=counts,
            statements={pattern.name: pattern.statement or "" for pattern in claim.patterns},
        )
        with (
            UnfinishedRun(path, head, is_resumed=is_resumed) as unfinished,
            _open_server(endpoint, unfinished) as place,
            ExitStack() as stack,
        ):
            staging = _stage_rows(claim, snapshot, unfinished, progress)
            stack.callback(staging.close)
            making = StagedItems(unfinished.space / "items", claim.design, claim.inventory, staging)
            stack.callback(making.close)
            making.make(progress)
            read_side, loaded, rows = snapshot, making, staging
            if not is_whole:
                part = _SampleCopy(claim, source, staging, place, sample or SAMPLE_ROWS, stack)
                read_side, loaded, rows = part.snapshot, part.making, part.staging
            stack.callback(_drop_tables, place, claim.design, unfinished)
            _load_items(loaded, claim.design, place, unfinished, progress)
            draw = ParameterDraw(rows, claim.inventory)
            reads = ReadProof(
                claim.design, claim.inventory, read_side, place.server, draw, place.prefix
            )
            writes = stack.enter_context(_write_proof(claim, source, staging, place))
            functional = _prove_patterns(claim, reads, writes, unfinished, progress)
            keys = [
                *making.problems.values(),
                *_ranges(claim),
                *collation_problems(source, claim.inventory),
            ]
            run = ProofRun(
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                model=name,
                fingerprint=fingerprint(claim.design),
                endpoint=place.address,
                source=str(source.address),
                is_all=is_whole,
                seconds=round(time.monotonic() - started, 3),
                summary=_summary(functional, len(keys)),
                acceptance=making.acceptance(counts),
                way_back=making.way_back(),
                keys=[ModelLines(folder, name).of_key(pattern) for pattern in keys],
                functional=functional,
                non_functional=[
                    *unfinished.checks(
                        "rates", lambda: _rehearse(claim, rows, loaded, making.count(), place)
                    ),
                    *unfinished.checks(
                        "load", lambda: load_checks(place.server, claim.design, place.prefix)
                    ),
                ],
                recovery=unfinished.checks("recovery", lambda: _check_recovery(claim, place)),
                user_acceptance=user_acceptance(folder, claim.patterns),
            )
    _write_results(folder, run)
    return run


def _read_claim(folder: Folder, name: str) -> DesignClaim:
    volumes = read_volumes(folder)
    design = read_design(folder, name)
    patterns = read_patterns(folder, volumes.inventory).patterns
    unknown = list(find_unknown_names(subject_of(design, patterns, volumes)))
    if unknown:
        raise PartitaError(
            f"{folder.path / name} cannot be tested: {unknown[0].place}, {unknown[0].message}"
        )
    return DesignClaim(folder, name, design, patterns, volumes)


def _write_results(folder: Folder, run: ProofRun) -> None:
    """Writes `test.json` and a copy of it under the run's date, so that progress can be seen."""
    (folder.path / RUNS).mkdir(exist_ok=True)
    date = run.at.replace(":", "").replace("+0000", "Z")
    folder.write_json(f"{RUNS}/{date}.{run.model.removesuffix('.toml')}.json", run)
    folder.write_json(TEST, run)


@contextmanager
def _open_server(endpoint: str | None, unfinished: UnfinishedRun) -> Iterator[ProofServer]:
    """Yields a private server, or a prefix for tables on another server: that of a stopped run, if
    there is one."""
    with ExitStack() as stack:
        space = Path(stack.enter_context(TemporaryDirectory(prefix="partita-test-")))
        address = endpoint if endpoint is not None else stack.enter_context(private_server())
        server = DynamoDBClient(address)
        stack.callback(server.close)
        shown = endpoint or "a private server"
        prefix = f"partita-test-{secrets.token_hex(4)}." if endpoint is not None else ""
        left = unfinished.left
        if left is not None and left.endpoint == endpoint:
            prefix = left.prefix
        yield ProofServer(server, shown, prefix, space)


# Rows.


def _stage_rows(
    claim: DesignClaim, snapshot: SourceSnapshot, unfinished: UnfinishedRun, progress: Progress
) -> StagedRows:
    staging = StagedRows(unfinished.space / STAGED_ROWS, claim.inventory, claim.design)
    total = sum(table.row_count for table in claim.tables)
    done = 0
    for table in claim.tables:
        # A stopped run may have staged this table already.
        if not staging.has(table.name):
            for count in staging.fill(table.name, snapshot.rows(table)):
                progress("Rows", min(done + count, total), total)
        done += staging.count(table.name)
    return staging


def _count_rows(claim: DesignClaim, source: SourceDatabase) -> dict[str, int]:
    """Returns the source's own row counts, in the same transaction."""
    return {
        table.name: int(source.rows(f"SELECT count(*) FROM {source.relation(table)}")[0][0])
        for table in claim.tables
    }


class _SampleCopy:
    """Some rows of each table in a private copy, which then answers the statements."""

    def __init__(
        self,
        claim: DesignClaim,
        source: SourceDatabase,
        whole: StagedRows,
        place: ProofServer,
        count: int,
        stack: ExitStack,
    ) -> None:
        rows = sampled_rows(whole, claim.inventory, count)
        try:
            copy = stack.enter_context(private_copy(source, claim.inventory, rows))
        except CopyNotPossible as reason:
            raise PartitaError(f"{reason} A sample needs one; --all does not.") from reason
        self.snapshot = SourceSnapshot(copy, claim.inventory, is_streamed=False)
        self.staging = StagedRows(place.space / "sample", claim.inventory, claim.design)
        for table in claim.tables:
            for _ in self.staging.fill(table.name, self.snapshot.rows(table)):
                pass
        self.making = StagedItems(
            place.space / "sampled-items", claim.design, claim.inventory, self.staging
        )
        self.making.make(silent)
        stack.callback(self.staging.close)
        stack.callback(self.making.close)


def _load_items(
    making: StagedItems,
    design: Design,
    place: ProofServer,
    unfinished: UnfinishedRun,
    progress: Progress,
) -> None:
    """Loads the items; those that a stopped run has loaded already are skipped."""
    left = unfinished.left
    done = _items_left(place, design) if left is not None and left.prefix == place.prefix else 0
    skipped = min(done, left.items) if left is not None else 0
    if not done:
        create_tables(place.server, design, place.prefix)
    total = making.count()
    items = ((place.prefix + name, item) for name, item in making.all_items(skipped))
    for count in put_all(place.server, items):
        progress("Loading", skipped + count, total)
        if place.prefix:
            unfinished.note_loaded(
                AcknowledgedItems(
                    endpoint=place.address, prefix=place.prefix, items=skipped + count
                )
            )


def _items_left(place: ProofServer, design: Design) -> int:
    """Returns more than any number of items when the tables of a stopped run all exist; otherwise
    deletes what is left of them and returns 0."""
    names = [
        table_name
        for table_name in list_tables(place.server)
        if place.prefix and table_name.startswith(place.prefix)
    ]
    expected_names = {place.prefix + table.name for table in design.tables}
    is_whole = expected_names <= set(names)
    for name in names:
        if not is_whole or name not in expected_names:
            delete_table(place.server, name)
    return sys.maxsize if is_whole else 0


def _drop_tables(place: ProofServer, design: Design, unfinished: UnfinishedRun) -> None:
    existing = set(list_tables(place.server))
    for table in design.tables:
        if place.prefix + table.name in existing:
            place.server.call("DeleteTable", TableName=place.prefix + table.name)
    unfinished.forget_loaded()


# Patterns.


@contextmanager
def _write_proof(
    claim: DesignClaim, source: SourceDatabase, staging: StagedRows, place: ProofServer
) -> Iterator[WriteProof | str]:
    """Yields the proof of writes, or a sentence that says why writes cannot be run here."""
    if all(pattern.operation in ("read", "aggregate") for pattern in claim.patterns):
        yield "No pattern writes."
        return
    rows = sampled_rows(staging, claim.inventory, WRITE_ROWS, _rows_to_change(claim, staging))
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(private_copy(source, claim.inventory, rows))
        except CopyNotPossible as reason:
            yield str(reason)
            return
        proof = WriteProof(
            claim.design,
            claim.inventory,
            copy,
            place.server,
            place.space,
            f"{place.prefix}writes.",
        )
        stack.callback(proof.close)
        yield proof


def _rows_to_change(claim: DesignClaim, staging: StagedRows) -> Iterator[tuple[str, Item]]:
    """Yields rows that the write statements would change, so that the proof changes some."""
    statements = PatternStatements(SchemaLookup(claim.inventory))
    for pattern in claim.patterns:
        with suppress(NotExact):
            statement = statements.of(pattern)
            if isinstance(statement, Modification):
                yield from matching_rows(staging, claim.inventory, statement)


def _prove_patterns(
    claim: DesignClaim,
    reads: ReadProof,
    writes: WriteProof | str,
    unfinished: UnfinishedRun,
    progress: Progress,
) -> list[PatternProof]:
    statements = PatternStatements(SchemaLookup(claim.inventory))
    lines = ModelLines(claim.folder, claim.name)
    served: dict[str, list[PatternAccess]] = {}
    for access in claim.design.access:
        served.setdefault(access.pattern, []).append(access)
    unserved = {
        unserved_pattern.pattern: unserved_pattern.why for unserved_pattern in claim.design.unserved
    }
    proofs = []
    for number, pattern in enumerate(claim.patterns):
        progress("Patterns", number, len(claim.patterns))
        accesses = served.get(pattern.name, [])
        if not accesses:
            why = unserved.get(pattern.name, "no request of the model serves it")
            proofs.append(_without_proof(pattern, "unserved", why))
            continue
        try:
            statement = statements.of(pattern)
        except NotExact as reason:
            proofs.append(_without_proof(pattern, "unproven", str(reason)))
            continue
        finished = unfinished.of(pattern.name)
        if finished is not None:
            proofs.append(finished)
            continue
        line = lines.of_pattern(pattern.name)
        if isinstance(statement, ResolvedQuery):
            proofs.append(reads.of(pattern, statement, accesses, line))
        elif accesses[0].request == "TTL":
            proofs.append(
                _without_proof(pattern, "unproven", "DynamoDB deletes expired items at any time")
            )
        elif isinstance(writes, str):
            proofs.append(_without_proof(pattern, "unproven", writes))
        else:
            proofs.append(writes.of(pattern, statement, accesses, line))
        unfinished.add(proofs[-1])
    progress("Patterns", len(claim.patterns), len(claim.patterns))
    return proofs


def _rehearse(
    claim: DesignClaim, staging: StagedRows, making: StagedItems, items: int, place: ProofServer
) -> list[ProofCheck]:
    calls_max = claim.folder.section("test", ProofSettings).load_calls
    if not calls_max:
        detail = "[test] load_calls in migration.toml is 0."
        return [ProofCheck(name="stated rates and peaks", outcome="not done", detail=detail)]
    rehearsal = CapacityRehearsal(
        claim.design, claim.patterns, claim.volumes, staging, making, items, calls_max
    )
    return rehearsal.checks(place.server.endpoint, place.prefix)


def _check_recovery(claim: DesignClaim, place: ProofServer) -> list[ProofCheck]:
    if not claim.folder.section("test", ProofSettings).recovery:
        detail = "[test] recovery in migration.toml is false."
        return [ProofCheck(name="back up, lose, restore", outcome="not done", detail=detail)]
    return recovery_checks(place.server, claim.design, place.prefix)


def _without_proof(pattern: AccessPattern, verdict: Verdict, why: str) -> PatternProof:
    return PatternProof(
        pattern=pattern.name,
        operation=pattern.operation,
        verdict=verdict,
        why=why,
        statement=pattern.statement or "",
    )


def _ranges(claim: DesignClaim) -> Iterator[KeyProblem]:
    """Yields requests whose key range also contains items of another type that no filter
    removes."""
    planner = ReadPlanner(claim.design, claim.inventory)
    for access in claim.design.access:
        for other in planner.types_met(access):
            yield KeyProblem(
                kind="two types in one range",
                place=f"access {access.pattern!r}",
                detail=f"items of {other} lie among those of {access.entity} that it reads",
            )


def _summary(functional: list[PatternProof], key_problems: int) -> ProofSummary:
    verdicts = [proof.verdict for proof in functional]
    return ProofSummary(
        proven=verdicts.count("proven"),
        differs=verdicts.count("differs"),
        unproven=verdicts.count("unproven"),
        unserved=verdicts.count("unserved"),
        key_problems=key_problems,
    )
