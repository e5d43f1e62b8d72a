"""Stage `test`: a design on a server, asked what the source is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from partita.migrate.folder import Folder
from partita.migrate.model.design import Access, Design
from partita.migrate.model.files import CHOSEN, read_design
from partita.migrate.model.proofs import RUNS, TEST, fingerprint
from partita.migrate.progress import Progress, silent
from partita.migrate.proving.made_items import Making
from partita.migrate.proving.parameters import Draw
from partita.migrate.proving.private_server import DynamoDB, private_server
from partita.migrate.proving.private_source import NoCopy, private_copy
from partita.migrate.proving.reads import ReadProof
from partita.migrate.proving.results import PatternProof, Summary, TestRun
from partita.migrate.proving.sampling import sample
from partita.migrate.proving.snapshot import Snapshot
from partita.migrate.proving.staging import Staging, lookups
from partita.migrate.proving.tables import create_tables, put_all
from partita.migrate.proving.writes import WriteProof
from partita.migrate.statements.patterns import Statements
from partita.migrate.statements.question import NotExact, Question
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.patterns.file import read_patterns
from partita.migrate.understanding.patterns.mining.lookup import SchemaLookup
from partita.migrate.understanding.schema.inventory import Inventory, read_inventory
from partita.migrate.understanding.sources import connect

WRITE_ROWS = 30
"""Of each table, in the private copy that writes run on."""


def test(
    folder: Folder,
    *,
    name: str = CHOSEN,
    endpoint: str | None = None,
    is_all: bool = False,
    sample: int | None = None,
    ask: Callable[[str], str] | None = None,
    progress: Progress = silent,
) -> TestRun:
    started = time.monotonic()
    inventory = read_inventory(folder)
    design = read_design(folder, name)
    patterns = read_patterns(folder, inventory).patterns
    with (
        TemporaryDirectory(prefix="partita-test-") as space,
        connect(folder, ask) as source,
        Snapshot(source, inventory) as snapshot,
        _server(endpoint) as (server, address),
    ):
        staging = Staging(Path(space) / "rows", inventory, lookups(design, inventory))
        _stage(staging, snapshot, inventory, progress)
        making = Making(Path(space) / "items", design, inventory, staging)
        making.make(progress)
        create_tables(server, design)
        total = making.count()
        for done in put_all(server, making.all_items()):
            progress("Loading", done, total)
        reads = ReadProof(design, inventory, snapshot, server, Draw(staging, inventory), "")
        with _write_proof(design, inventory, snapshot, staging, server, Path(space)) as writes:
            functional = _functional(
                folder, name, design, inventory, patterns, reads, writes, progress
            )
        keys = list(making.problems.values())
        run = TestRun(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            model=name,
            fingerprint=fingerprint(design),
            endpoint=address,
            source=str(source.address),
            is_all=True,
            seconds=round(time.monotonic() - started, 3),
            summary=_summary(functional, len(keys)),
            acceptance=making.acceptance({}),
            way_back=making.way_back(),
            keys=keys,
            functional=functional,
        )
        staging.close()
        making.close()
    _keep(folder, run)
    return run


def _keep(folder: Folder, run: TestRun) -> None:
    """The last run, and every run under its date, so that progress shows."""
    (folder.path / RUNS).mkdir(exist_ok=True)
    date = run.at.replace(":", "").replace("+0000", "Z")
    folder.write_json(f"{RUNS}/{date}.{run.model.removesuffix('.toml')}.json", run)
    folder.write_json(TEST, run)


@contextmanager
def _write_proof(
    design: Design,
    inventory: Inventory,
    snapshot: Snapshot,
    staging: Staging,
    server: DynamoDB,
    space: Path,
) -> Iterator[WriteProof | str]:
    """Or why writes cannot be run here."""
    rows = sample(staging, inventory, WRITE_ROWS)
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(private_copy(snapshot.source, inventory, rows))
        except NoCopy as reason:
            yield str(reason)
            return
        yield WriteProof(design, inventory, copy, server, space)


@contextmanager
def _server(endpoint: str | None) -> Iterator[tuple[DynamoDB, str]]:
    if endpoint is not None:
        server = DynamoDB(endpoint)
        try:
            yield server, endpoint
        finally:
            server.close()
        return
    with private_server() as address:
        server = DynamoDB(address)
        try:
            yield server, "a private server"
        finally:
            server.close()


def _stage(staging: Staging, snapshot: Snapshot, inventory: Inventory, progress: Progress) -> None:
    tables = [table for table in inventory.tables if table.is_readable and table.columns]
    total = sum(table.row_count for table in tables)
    done = 0
    for table in tables:
        count = 0
        for count in staging.fill(table.name, snapshot.rows(table)):
            progress("Rows", min(done + count, total), total)
        done += count


def _functional(
    folder: Folder,
    name: str,
    design: Design,
    inventory: Inventory,
    patterns: list[AccessPattern],
    reads: ReadProof,
    writes: WriteProof | str,
    progress: Progress,
) -> list[PatternProof]:
    statements = Statements(SchemaLookup(inventory))
    lines = _lines(folder.path / name)
    served: dict[str, list[Access]] = {}
    for access in design.access:
        served.setdefault(access.pattern, []).append(access)
    unserved = {one.pattern: one.why for one in design.unserved}
    found = []
    for number, pattern in enumerate(patterns):
        progress("Patterns", number, len(patterns))
        accesses = served.get(pattern.name, [])
        line = f"{name}, line {lines.get(pattern.name, 0)}"
        if not accesses:
            why = unserved.get(pattern.name, "no request of the model serves it")
            found.append(_without(pattern, "unserved", why))
            continue
        try:
            statement = statements.of(pattern)
        except NotExact as reason:
            found.append(_without(pattern, "unproven", str(reason)))
            continue
        if isinstance(statement, Question):
            found.append(reads.of(pattern, statement, accesses, line))
        elif accesses[0].request == "TTL":
            found.append(_without(pattern, "unproven", "the service deletes when it likes"))
        elif isinstance(writes, str):
            found.append(_without(pattern, "unproven", writes))
        else:
            found.append(writes.of(pattern, statement, accesses, line))
    progress("Patterns", len(patterns), len(patterns))
    return found


def _without(pattern: AccessPattern, verdict: str, why: str) -> PatternProof:
    return PatternProof(
        pattern=pattern.name,
        operation=pattern.operation,
        verdict=verdict,  # type: ignore[arg-type]
        why=why,
        statement=pattern.statement or "",
    )


def _lines(path: Path) -> dict[str, int]:
    """By pattern, the line of the model file where its request is said."""
    found: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("pattern = "):
            found.setdefault(line.removeprefix("pattern = ").strip('"'), number)
    return found


def _summary(functional: list[PatternProof], key_problems: int) -> Summary:
    verdicts = [one.verdict for one in functional]
    return Summary(
        proven=verdicts.count("proven"),
        differs=verdicts.count("differs"),
        unproven=verdicts.count("unproven"),
        unserved=verdicts.count("unserved"),
        key_problems=key_problems,
    )
