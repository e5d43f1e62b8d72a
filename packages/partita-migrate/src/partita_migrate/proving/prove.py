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

from partita.database.item.values import Item
from partita.errors import PartitaError
from partita_migrate.designing.requests.reads import ReadPlanner
from partita_migrate.folder import Folder
from partita_migrate.model.design import Access, Design
from partita_migrate.model.files import CHOSEN, read_design
from partita_migrate.model.findings import subject_of
from partita_migrate.model.proofs import RUNS, TEST, Verdict, fingerprint
from partita_migrate.model.unknown_names import find_unknown_names
from partita_migrate.model.volumes import Volumes, read_volumes
from partita_migrate.progress import Progress, silent
from partita_migrate.proving.acceptance import user_acceptance
from partita_migrate.proving.collated_texts import collation_problems
from partita_migrate.proving.load import load_checks
from partita_migrate.proving.made_items import Making
from partita_migrate.proving.model_lines import ModelLines
from partita_migrate.proving.parameters import Draw
from partita_migrate.proving.private_server import DynamoDB, private_server
from partita_migrate.proving.private_source import NoCopy, private_copy
from partita_migrate.proving.reads import ReadProof
from partita_migrate.proving.recovery import recovery_checks
from partita_migrate.proving.rehearsal import Rehearsal
from partita_migrate.proving.results import Check, KeyProblem, PatternProof, ProofRun, Summary
from partita_migrate.proving.sampling import sample as sampled_rows
from partita_migrate.proving.settings import ProofSettings
from partita_migrate.proving.snapshot import Snapshot
from partita_migrate.proving.staging import Staging
from partita_migrate.proving.tables import (
    create_tables,
    delete_table,
    list_tables,
    put_all,
)
from partita_migrate.proving.taken_rows import taken_rows
from partita_migrate.proving.unfinished import Loaded, RunHead, Unfinished
from partita_migrate.proving.writes.proof import WriteProof
from partita_migrate.statements.patterns import Statements
from partita_migrate.statements.question import Modification, NotExact, Question
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.patterns.file import read_patterns
from partita_migrate.understanding.patterns.mining.lookup import SchemaLookup
from partita_migrate.understanding.schema.inventory import Inventory, Table
from partita_migrate.understanding.sources.connection import Source, connect

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
class Claim:
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
    def tables(self) -> list[Table]:
        return [one for one in self.inventory.tables if one.is_readable and one.columns]


@dataclass(frozen=True)
class Place:
    """Where it is proven: a server, a name before each table, files that go afterwards."""

    server: DynamoDB
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
        Snapshot(source, claim.inventory) as snapshot,
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
            Unfinished(path, head, is_resumed=is_resumed) as unfinished,
            _place(endpoint, unfinished) as place,
            ExitStack() as stack,
        ):
            staging = _staged(claim, snapshot, unfinished, progress)
            stack.callback(staging.close)
            making = Making(unfinished.space / "items", claim.design, claim.inventory, staging)
            stack.callback(making.close)
            making.make(progress)
            read_side, loaded, rows = snapshot, making, staging
            if not is_whole:
                part = _Part(claim, source, staging, place, sample or SAMPLE_ROWS, stack)
                read_side, loaded, rows = part.snapshot, part.making, part.staging
            stack.callback(_drop, place, claim.design, unfinished)
            _load(loaded, claim.design, place, unfinished, progress)
            draw = Draw(rows, claim.inventory)
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


def _claim(folder: Folder, name: str) -> Claim:
    volumes = read_volumes(folder)
    design = read_design(folder, name)
    patterns = read_patterns(folder, volumes.inventory).patterns
    wrong = list(find_unknown_names(subject_of(design, patterns, volumes)))
    if wrong:
        raise PartitaError(
            f"{folder.path / name} cannot be loaded: {wrong[0].place}, {wrong[0].message}"
        )
    return Claim(folder, name, design, patterns, volumes)


def _keep(folder: Folder, run: ProofRun) -> None:
    """The last run, and every run under its date, so that progress shows."""
    (folder.path / RUNS).mkdir(exist_ok=True)
    date = run.at.replace(":", "").replace("+0000", "Z")
    folder.write_json(f"{RUNS}/{date}.{run.model.removesuffix('.toml')}.json", run)
    folder.write_json(TEST, run)


@contextmanager
def _place(endpoint: str | None, unfinished: Unfinished) -> Iterator[Place]:
    """A private server, or tables with names of their own on another one: those of a run that was
    stopped, if there are some."""
    with ExitStack() as stack:
        space = Path(stack.enter_context(TemporaryDirectory(prefix="partita-test-")))
        address = endpoint if endpoint is not None else stack.enter_context(private_server())
        server = DynamoDB(address)
        stack.callback(server.close)
        shown = endpoint or "a private server"
        prefix = f"partita-test-{secrets.token_hex(4)}." if endpoint is not None else ""
        left = unfinished.left
        if left is not None and left.endpoint == endpoint:
            prefix = left.prefix
        yield Place(server, shown, prefix, space)


# Rows.


def _staged(
    claim: Claim, snapshot: Snapshot, unfinished: Unfinished, progress: Progress
) -> Staging:
    staging = Staging(unfinished.space / STAGED_ROWS, claim.inventory, claim.design)
    total = sum(table.row_count for table in claim.tables)
    done = 0
    for table in claim.tables:
        if not staging.has(table.name):
            for count in staging.fill(table.name, snapshot.rows(table)):
                progress("Rows", min(done + count, total), total)
        done += staging.count(table.name)
    return staging


def _counts(claim: Claim, source: Source) -> dict[str, int]:
    """As the source itself counts, in the same transaction."""
    return {
        table.name: int(source.rows(f"SELECT count(*) FROM {source.relation(table)}")[0][0])
        for table in claim.tables
    }


class _Part:
    """Some rows of each table, in a private copy, which is what reads are asked of then."""

    def __init__(
        self,
        claim: Claim,
        source: Source,
        whole: Staging,
        place: Place,
        count: int,
        stack: ExitStack,
    ) -> None:
        rows = sampled_rows(whole, claim.inventory, count)
        try:
            copy = stack.enter_context(private_copy(source, claim.inventory, rows))
        except NoCopy as reason:
            raise PartitaError(f"{reason} A sample needs one; --all does without.") from reason
        self.snapshot = Snapshot(copy, claim.inventory, is_streamed=False)
        self.staging = Staging(place.space / "sample", claim.inventory, claim.design)
        for table in claim.tables:
            for _ in self.staging.fill(table.name, self.snapshot.rows(table)):
                pass
        self.making = Making(
            place.space / "sampled-items", claim.design, claim.inventory, self.staging
        )
        self.making.make(silent)
        stack.callback(self.staging.close)
        stack.callback(self.making.close)


def _load(
    making: Making, design: Design, place: Place, unfinished: Unfinished, progress: Progress
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
                Loaded(endpoint=place.address, prefix=place.prefix, items=skipped + count)
            )


def _items_left(place: Place, design: Design) -> int:
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


def _drop(place: Place, design: Design, unfinished: Unfinished) -> None:
    there = set(list_tables(place.server))
    for table in design.tables:
        if place.prefix + table.name in there:
            place.server.call("DeleteTable", TableName=place.prefix + table.name)
    unfinished.forget_loaded()


# Patterns.


@contextmanager
def _write_proof(
    claim: Claim, source: Source, staging: Staging, place: Place
) -> Iterator[WriteProof | str]:
    """Or why writes cannot be run here."""
    if all(one.operation in ("read", "aggregate") for one in claim.patterns):
        yield "No pattern writes."
        return
    rows = sampled_rows(staging, claim.inventory, WRITE_ROWS, _taken(claim, staging))
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(private_copy(source, claim.inventory, rows))
        except NoCopy as reason:
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


def _taken(claim: Claim, staging: Staging) -> Iterator[tuple[str, Item]]:
    """Rows that the writes would change, so that their proof changes some."""
    statements = Statements(SchemaLookup(claim.inventory))
    for pattern in claim.patterns:
        with suppress(NotExact):
            statement = statements.of(pattern)
            if isinstance(statement, Modification):
                yield from taken_rows(staging, claim.inventory, statement)


def _functional(
    claim: Claim,
    reads: ReadProof,
    writes: WriteProof | str,
    unfinished: Unfinished,
    progress: Progress,
) -> list[PatternProof]:
    statements = Statements(SchemaLookup(claim.inventory))
    lines = ModelLines(claim.folder, claim.name)
    served: dict[str, list[Access]] = {}
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
        if isinstance(statement, Question):
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
    claim: Claim, staging: Staging, making: Making, items: int, place: Place
) -> list[Check]:
    calls_max = claim.folder.section("test", ProofSettings).load_calls
    if not calls_max:
        said = "[test] load_calls in migration.toml is 0."
        return [Check(name="stated rates and peaks", outcome="not done", detail=said)]
    rehearsal = Rehearsal(
        claim.design, claim.patterns, claim.volumes, staging, making, items, calls_max
    )
    return rehearsal.checks(place.server.endpoint, place.prefix)


def _recovered(claim: Claim, place: Place) -> list[Check]:
    if not claim.folder.section("test", ProofSettings).recovery:
        said = "[test] recovery in migration.toml is false."
        return [Check(name="back up, lose, restore", outcome="not done", detail=said)]
    return recovery_checks(place.server, claim.design, place.prefix)


def _without(pattern: AccessPattern, verdict: Verdict, why: str) -> PatternProof:
    return PatternProof(
        pattern=pattern.name,
        operation=pattern.operation,
        verdict=verdict,
        why=why,
        statement=pattern.statement or "",
    )


def _ranges(claim: Claim) -> Iterator[KeyProblem]:
    """Requests in whose range items of another type lie, which nothing filters out."""
    planner = ReadPlanner(claim.design, claim.inventory)
    for access in claim.design.access:
        for other in planner.types_met(access):
            yield KeyProblem(
                kind="two types in one range",
                place=f"access {access.pattern!r}",
                detail=f"items of {other} lie among those of {access.entity} that it reads",
            )


def _summary(functional: list[PatternProof], key_problems: int) -> Summary:
    verdicts = [one.verdict for one in functional]
    return Summary(
        proven=verdicts.count("proven"),
        differs=verdicts.count("differs"),
        unproven=verdicts.count("unproven"),
        unserved=verdicts.count("unserved"),
        key_problems=key_problems,
    )
