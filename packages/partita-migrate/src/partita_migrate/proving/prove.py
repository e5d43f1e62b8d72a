"""Stage `test`: a design on a server, asked what the source is asked."""

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
from partita_migrate.proving.parameter_sets.matching_rows import taken_rows
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
"""A source with more rows is sampled, unless every row is asked for."""
SAMPLE_ROWS = 1000
STAGED_ROWS = "rows.db"
"""Not `rows`, which older versions laid out differently: their unfinished runs read the rows
again."""
WRITE_ROWS = 30
"""Of each table, in the private copy that writes run on."""
STATEMENT_SECONDS_MAX = 3600
"""Reading a whole table takes as long as it takes."""


@dataclass(frozen=True)
class DesignClaim:
    """A design, and what it is to be proven on."""

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
        return [one for one in self.inventory.tables if one.is_readable and one.columns]


@dataclass(frozen=True)
class TestServer:
    """Where it is proven: a server, a name before each table, files that go afterwards."""

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
    started = time.monotonic()
    claim = _claim(folder, name)
    with (
        connect(folder, ask) as source,
        source.limit(STATEMENT_SECONDS_MAX),
        SourceSnapshot(source, claim.inventory) as snapshot,
    ):
        counts = _counts(claim, source)
        is_whole = is_all or (sample is None and sum(counts.values()) <= ALL_ROWS_MAX)
        path = folder.path / RUNS / f"unfinished.{name.removesuffix('.toml')}.jsonl"
        head = RunHead(
            fingerprint=fingerprint(claim.design),
            source=str(source.address),
            is_all=is_whole,
            rows=counts,
            statements={one.name: one.statement or "" for one in claim.patterns},
        )
        with (
            UnfinishedRun(path, head, is_resumed=is_resumed) as unfinished,
            _place(endpoint, unfinished) as place,
            ExitStack() as stack,
        ):
            staging = _staged(claim, snapshot, unfinished, progress)
            stack.callback(staging.close)
            making = StagedItems(unfinished.space / "items", claim.design, claim.inventory, staging)
            stack.callback(making.close)
            making.make(progress)
            read_side, loaded, rows = snapshot, making, staging
            if not is_whole:
                part = _SampleCopy(claim, source, staging, place, sample or SAMPLE_ROWS, stack)
                read_side, loaded, rows = part.snapshot, part.making, part.staging
            stack.callback(_drop, place, claim.design, unfinished)
            _load(loaded, claim.design, place, unfinished, progress)
            draw = ParameterDraw(rows, claim.inventory)
            reads = ReadProof(
                claim.design, claim.inventory, read_side, place.server, draw, place.prefix
            )
            writes = stack.enter_context(_write_proof(claim, source, staging, place))
            functional = _functional(claim, reads, writes, unfinished, progress)
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
                keys=[ModelLines(folder, name).of_key(one) for one in keys],
                functional=functional,
                non_functional=[
                    *unfinished.checks(
                        "rates", lambda: _rehearsed(claim, rows, loaded, making.count(), place)
                    ),
                    *unfinished.checks(
                        "load", lambda: load_checks(place.server, claim.design, place.prefix)
                    ),
                ],
                recovery=unfinished.checks("recovery", lambda: _recovered(claim, place)),
                user_acceptance=user_acceptance(folder, claim.patterns),
            )
    _keep(folder, run)
    return run


def _claim(folder: Folder, name: str) -> DesignClaim:
    volumes = read_volumes(folder)
    design = read_design(folder, name)
    patterns = read_patterns(folder, volumes.inventory).patterns
    wrong = list(find_unknown_names(subject_of(design, patterns, volumes)))
    if wrong:
        raise PartitaError(
            f"{folder.path / name} cannot be loaded: {wrong[0].place}, {wrong[0].message}"
        )
    return DesignClaim(folder, name, design, patterns, volumes)


def _keep(folder: Folder, run: ProofRun) -> None:
    """The last run, and every run under its date, so that progress shows."""
    (folder.path / RUNS).mkdir(exist_ok=True)
    date = run.at.replace(":", "").replace("+0000", "Z")
    folder.write_json(f"{RUNS}/{date}.{run.model.removesuffix('.toml')}.json", run)
    folder.write_json(TEST, run)


@contextmanager
def _place(endpoint: str | None, unfinished: UnfinishedRun) -> Iterator[TestServer]:
    """A private server, or tables with names of their own on another one: those of a run that was
    stopped, if there are some."""
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
        yield TestServer(server, shown, prefix, space)


# Rows.


def _staged(
    claim: DesignClaim, snapshot: SourceSnapshot, unfinished: UnfinishedRun, progress: Progress
) -> StagedRows:
    staging = StagedRows(unfinished.space / STAGED_ROWS, claim.inventory, claim.design)
    total = sum(table.row_count for table in claim.tables)
    done = 0
    for table in claim.tables:
        if not staging.has(table.name):
            for count in staging.fill(table.name, snapshot.rows(table)):
                progress("Rows", min(done + count, total), total)
        done += staging.count(table.name)
    return staging


def _counts(claim: DesignClaim, source: SourceDatabase) -> dict[str, int]:
    """As the source itself counts, in the same transaction."""
    return {
        table.name: int(source.rows(f"SELECT count(*) FROM {source.relation(table)}")[0][0])
        for table in claim.tables
    }


class _SampleCopy:
    """Some rows of each table, in a private copy, which is what reads are asked of then."""

    def __init__(
        self,
        claim: DesignClaim,
        source: SourceDatabase,
        whole: StagedRows,
        place: TestServer,
        count: int,
        stack: ExitStack,
    ) -> None:
        rows = sampled_rows(whole, claim.inventory, count)
        try:
            copy = stack.enter_context(private_copy(source, claim.inventory, rows))
        except CopyNotPossible as reason:
            raise PartitaError(f"{reason} A sample needs one; --all does without.") from reason
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


def _load(
    making: StagedItems,
    design: Design,
    place: TestServer,
    unfinished: UnfinishedRun,
    progress: Progress,
) -> None:
    """What a server that outlives a run has acknowledged is not put again."""
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


def _items_left(place: TestServer, design: Design) -> int:
    """More than any run would have loaded, if the tables of a stopped run are all there; else 0,
    and none of them is."""
    names = [
        one for one in list_tables(place.server) if place.prefix and one.startswith(place.prefix)
    ]
    wanted = {place.prefix + table.name for table in design.tables}
    is_whole = wanted <= set(names)
    for name in names:
        if not is_whole or name not in wanted:
            delete_table(place.server, name)
    return sys.maxsize if is_whole else 0


def _drop(place: TestServer, design: Design, unfinished: UnfinishedRun) -> None:
    there = set(list_tables(place.server))
    for table in design.tables:
        if place.prefix + table.name in there:
            place.server.call("DeleteTable", TableName=place.prefix + table.name)
    unfinished.forget_loaded()


# Patterns.


@contextmanager
def _write_proof(
    claim: DesignClaim, source: SourceDatabase, staging: StagedRows, place: TestServer
) -> Iterator[WriteProof | str]:
    """Or why writes cannot be run here."""
    if all(one.operation in ("read", "aggregate") for one in claim.patterns):
        yield "No pattern writes."
        return
    rows = sampled_rows(staging, claim.inventory, WRITE_ROWS, _taken(claim, staging))
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


def _taken(claim: DesignClaim, staging: StagedRows) -> Iterator[tuple[str, Item]]:
    """Rows that the writes would change, so that their proof changes some."""
    statements = PatternStatements(SchemaLookup(claim.inventory))
    for pattern in claim.patterns:
        with suppress(NotExact):
            statement = statements.of(pattern)
            if isinstance(statement, Modification):
                yield from taken_rows(staging, claim.inventory, statement)


def _functional(
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
    unserved = {one.pattern: one.why for one in claim.design.unserved}
    found = []
    for number, pattern in enumerate(claim.patterns):
        progress("Patterns", number, len(claim.patterns))
        accesses = served.get(pattern.name, [])
        if not accesses:
            why = unserved.get(pattern.name, "no request of the model serves it")
            found.append(_without(pattern, "unserved", why))
            continue
        try:
            statement = statements.of(pattern)
        except NotExact as reason:
            found.append(_without(pattern, "unproven", str(reason)))
            continue
        known = unfinished.of(pattern.name)
        if known is not None:
            found.append(known)
            continue
        line = lines.of_pattern(pattern.name)
        if isinstance(statement, ResolvedQuery):
            found.append(reads.of(pattern, statement, accesses, line))
        elif accesses[0].request == "TTL":
            found.append(_without(pattern, "unproven", "the service deletes when it likes"))
        elif isinstance(writes, str):
            found.append(_without(pattern, "unproven", writes))
        else:
            found.append(writes.of(pattern, statement, accesses, line))
        unfinished.add(found[-1])
    progress("Patterns", len(claim.patterns), len(claim.patterns))
    return found


def _rehearsed(
    claim: DesignClaim, staging: StagedRows, making: StagedItems, items: int, place: TestServer
) -> list[ProofCheck]:
    calls_max = claim.folder.section("test", ProofSettings).load_calls
    if not calls_max:
        said = "[test] load_calls in migration.toml is 0."
        return [ProofCheck(name="stated rates and peaks", outcome="not done", detail=said)]
    rehearsal = CapacityRehearsal(
        claim.design, claim.patterns, claim.volumes, staging, making, items, calls_max
    )
    return rehearsal.checks(place.server.endpoint, place.prefix)


def _recovered(claim: DesignClaim, place: TestServer) -> list[ProofCheck]:
    if not claim.folder.section("test", ProofSettings).recovery:
        said = "[test] recovery in migration.toml is false."
        return [ProofCheck(name="back up, lose, restore", outcome="not done", detail=said)]
    return recovery_checks(place.server, claim.design, place.prefix)


def _without(pattern: AccessPattern, verdict: Verdict, why: str) -> PatternProof:
    return PatternProof(
        pattern=pattern.name,
        operation=pattern.operation,
        verdict=verdict,
        why=why,
        statement=pattern.statement or "",
    )


def _ranges(claim: DesignClaim) -> Iterator[KeyProblem]:
    """Requests in whose range items of another type lie, which nothing filters out."""
    planner = ReadPlanner(claim.design, claim.inventory)
    for access in claim.design.access:
        for other in planner.types_met(access):
            yield KeyProblem(
                kind="two types in one range",
                place=f"access {access.pattern!r}",
                detail=f"items of {other} lie among those of {access.entity} that it reads",
            )


def _summary(functional: list[PatternProof], key_problems: int) -> ProofSummary:
    verdicts = [one.verdict for one in functional]
    return ProofSummary(
        proven=verdicts.count("proven"),
        differs=verdicts.count("differs"),
        unproven=verdicts.count("unproven"),
        unserved=verdicts.count("unserved"),
        key_problems=key_problems,
    )
