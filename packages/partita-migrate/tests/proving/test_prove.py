"""A design is a claim: right designs are proven on all sources, and all kinds of wrong ones
refuted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from partita_migrate.commands import migrate
from partita_migrate.designing.model_stage import model
from partita_migrate.model.design import Design, Entity, ItemAttribute, PatternAccess, TableDesign
from partita_migrate.model.model_files import read_design, to_toml
from partita_migrate.proving import prove as proving
from partita_migrate.proving.proof_run.proof_results import PatternProof, ProofRun
from partita_migrate.proving.proof_run.unfinished_run import RunHead
from partita_migrate.proving.prove import test as prove
from partita_migrate.proving.read_proofs.read_proof import ReadProof
from partita_migrate.proving.sandbox.design_tables import BATCH_ITEMS, BATCHES_AT_ONCE, put_all
from partita_migrate.proving.sandbox.source_snapshot import SourceSnapshot
from partita_migrate.proving.staged_items import StagedItems
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data import shop
from testkit.data.moves import designed
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .conftest import Narrowed

UNSERVED = {"search"}
SINGLE = "model.single-table.toml"
WIDE = "model.denormalized.toml"


def verdicts(run: ProofRun) -> dict[str, str]:
    return {one.pattern: one.verdict for one in run.functional}


def assert_proven(run: ProofRun, unserved: set[str]) -> None:
    told = [(one.pattern, one.why, one.differences) for one in run.functional if one.differences]
    assert told == []
    expected = {name: "unserved" if name in unserved else "proven" for name in verdicts(run)}
    assert verdicts(run) == expected
    assert run.keys == []
    assert run.is_passed


@pytest.mark.parametrize("name", [WIDE, SINGLE])
def test_both_designs_of_a_shop_are_proven_on_sqlite(
    shop_folder: Folder, endpoint: str, name: str
) -> None:
    run = prove(shop_folder, name=name, endpoint=endpoint)
    assert_proven(run, UNSERVED)
    assert all(one.is_exact for one in run.way_back)
    assert [(one.processed, one.failed, one.skipped) for one in run.acceptance] == [
        (one.expected, 0, 0) for one in run.acceptance
    ]
    checked = {one.outcome for one in run.non_functional[1:]}
    assert checked == {"passed"}
    kept = sorted((shop_folder.path / "tests").glob("*.json"))
    assert kept and shop_folder.has("test.json")


@pytest.mark.parametrize("kind", ["mysql", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_the_shop_is_proven_on_a_server(
    request: pytest.FixtureRequest,
    tmp_path: object,
    endpoint: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    server: DatabaseServer = request.getfixturevalue("mariadb" if kind == "mysql" else "postgresql")
    url = server.create("shop", shop.script(kind))
    folder = designed(tmp_path / "folder", url)  # type: ignore[operator]
    run = prove(folder, name=SINGLE, endpoint=endpoint)
    assert_proven(run, UNSERVED)


def test_a_pattern_is_called_proven_only_by_a_test_of_that_very_design(
    narrowed: Narrowed, endpoint: str
) -> None:
    folder = narrowed("customer", "search")
    before = model(folder).proposals[0].proof
    assert {one.verdict for one in before} == {"unproven", "unserved"}
    prove(folder, name=WIDE, endpoint=endpoint)
    after = {one.pattern: one.verdict for one in model(folder).proposals[0].proof}
    assert after == {"customer": "proven", "search": "unserved"}


# Mutated designs.


def with_entity(design: Design, name: str, change: Callable[[Entity], Entity]) -> Design:
    tables = [
        replace(table, entities=[change(e) if e.name == name else e for e in table.entities])
        for table in design.tables
    ]
    return replace(design, tables=tables)


def with_attributes(
    design: Design, name: str, change: Callable[[ItemAttribute], ItemAttribute]
) -> Design:
    return with_entity(
        design, name, lambda one: replace(one, attributes=[change(a) for a in one.attributes])
    )


def with_access(
    design: Design, pattern: str, change: Callable[[PatternAccess], PatternAccess]
) -> Design:
    access = [change(one) if one.pattern == pattern else one for one in design.access]
    return replace(design, access=access)


def with_tables(design: Design, change: Callable[[TableDesign], TableDesign]) -> Design:
    return replace(design, tables=[change(table) for table in design.tables])


def refuted_or_not(folder: Folder, endpoint: str, design: Design) -> ProofRun:
    names = {one.pattern for one in design.access}
    assert names
    folder.write_text("mutated.toml", to_toml(design))
    return prove(folder, name="mutated.toml", endpoint=endpoint)


def test_types_in_one_range_that_nothing_tells_apart_are_refuted(
    narrowed: Narrowed, endpoint: str
) -> None:
    folder = narrowed("newest orders")
    design = read_design(folder, SINGLE)
    (asked,) = [one for one in design.access if one.pattern == "newest orders"]
    partition = asked.key[0].attribute

    def careless(table: TableDesign) -> TableDesign:
        """Loans share a collection of the index with other items, and the request returns all of
        them."""
        index = table.index(asked.index or "")
        assert index is not None and index.sort_key is not None
        (orders,) = [one for one in table.entities if one.name == "orders"]
        keys = {
            partition: orders.attribute(partition),
            index.sort_key.name: ItemAttribute(
                name=index.sort_key.name, type="S", template="{loaned_on}#{id:n19.0}"
            ),
        }

        def in_range(entity: Entity) -> Entity:
            if entity.name != "loans":
                return entity
            rest = [one for one in entity.attributes if one.name not in keys]
            return replace(entity, attributes=[*rest, *(one for one in keys.values() if one)])

        return replace(table, entities=[in_range(one) for one in table.entities])

    design = with_tables(design, careless)
    design = with_access(
        design, "newest orders", lambda one: replace(one, key=one.key[:1], filter=[])
    )
    run = refuted_or_not(folder, endpoint, design)
    assert verdicts(run) == {"newest orders": "differs"}
    assert {one.kind for one in run.keys} == {"two types in one range"}
    difference = run.functional[0].differences[0]
    assert difference.sql and difference.items
    assert "mutated.toml, line" in difference.line and partition in difference.line


def test_a_projection_without_what_is_read_is_refuted(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("loans of a product")

    def bare(table: TableDesign) -> TableDesign:
        indexes = [replace(one, projection="KEYS_ONLY", include=[]) for one in table.indexes]
        return replace(table, indexes=indexes)

    run = refuted_or_not(folder, endpoint, with_tables(read_design(folder, SINGLE), bare))
    assert verdicts(run) == {"loans of a product": "differs"}


def test_numbers_without_padding_are_refuted(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("lines of an order")

    def unpadded(one: ItemAttribute) -> ItemAttribute:
        return replace(one, template=(one.template or "").replace(":n19.0", "") or None)

    design = with_attributes(read_design(folder, SINGLE), "order_lines", unpadded)
    run = refuted_or_not(folder, endpoint, design)
    assert verdicts(run) == {"lines of an order": "differs"}
    assert "another order" in run.functional[0].differences[0].what


def test_a_number_that_is_kept_as_text_is_refuted(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("bookings by amount")
    design = read_design(folder, WIDE)

    def as_text(table: TableDesign) -> TableDesign:
        indexes = [
            replace(one, sort_key=replace(one.sort_key, type="S"))
            if one.sort_key is not None and one.sort_key.name == "amount"
            else one
            for one in table.indexes
        ]
        return replace(table, indexes=indexes)

    design = with_tables(design, as_text)
    design = with_attributes(
        design, "bookings", lambda one: replace(one, type="S") if one.name == "amount" else one
    )
    assert verdicts(refuted_or_not(folder, endpoint, design)) == {"bookings by amount": "differs"}


def test_a_key_that_does_not_fold_is_refuted(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("log in")

    def sensitive(one: ItemAttribute) -> ItemAttribute:
        return replace(one, template=(one.template or "").replace(":nocase", "") or None)

    design = with_attributes(read_design(folder, SINGLE), "customers", sensitive)
    design = with_access(
        design,
        "log in",
        lambda one: replace(
            one, key=[replace(c, value=c.value.replace(":nocase", "")) for c in one.key]
        ),
    )
    run = refuted_or_not(folder, endpoint, design)
    assert verdicts(run) == {"log in": "differs"}
    assert {one.case for one in run.functional[0].differences} >= {"other case of email"}


def test_a_filter_that_is_not_sent_is_refuted(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("open loans")
    design = with_access(
        read_design(folder, SINGLE), "open loans", lambda one: replace(one, filter=[])
    )
    assert verdicts(refuted_or_not(folder, endpoint, design)) == {"open loans": "differs"}


def test_a_key_that_two_rows_share_is_found_before_anything_is_loaded(
    narrowed: Narrowed, endpoint: str
) -> None:
    folder = narrowed("customer")

    def shared(one: ItemAttribute) -> ItemAttribute:
        return replace(one, template="L#{customer_id}") if one.name in ("PK", "SK") else one

    design = with_attributes(read_design(folder, SINGLE), "loans", shared)
    run = refuted_or_not(folder, endpoint, design)
    assert [(one.kind, one.place) for one in run.keys] == [("two rows in one item", "shop, loans")]
    assert not run.is_passed


def test_a_column_that_no_item_holds_takes_the_way_back(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("product")
    design = with_entity(
        read_design(folder, SINGLE),
        "products",
        lambda one: replace(one, attributes=[a for a in one.attributes if a.name != "note"]),
    )
    run = refuted_or_not(folder, endpoint, design)
    ways = {one.table: one.why for one in run.way_back if not one.is_exact}
    assert ways == {"products": "no item holds note as it was"}
    assert verdicts(run) == {"product": "differs"}


def test_a_write_to_another_item_than_the_rows_is_refuted(
    narrowed: Narrowed, endpoint: str
) -> None:
    folder = narrowed("ship")
    design = with_access(
        read_design(folder, SINGLE),
        "ship",
        lambda one: replace(one, key=[replace(c, value=f"X{c.value}") for c in one.key]),
    )
    assert verdicts(refuted_or_not(folder, endpoint, design)) == {"ship": "differs"}


def test_a_sample_is_asked_of_a_private_copy(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("newest orders", "ship")
    run = prove(folder, name=SINGLE, endpoint=endpoint, sample=20)
    assert not run.is_all
    assert verdicts(run) == {"newest orders": "proven", "ship": "proven"}
    orders = next(one for one in run.acceptance if one.table == "orders")
    assert orders.processed == 300, "keys are tested on every row"


# Stopped runs, and the command.


def test_a_stopped_run_goes_on_with_what_is_left(
    narrowed: Narrowed, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = narrowed("customer", "newest orders", "ship")
    asked: list[str] = []
    compare = ReadProof.of

    def stopping(self: ReadProof, pattern: AccessPattern, *more: Any) -> PatternProof:
        if pattern.name == "newest orders" and len(asked) == 1:
            raise KeyboardInterrupt
        asked.append(pattern.name)
        return compare(self, pattern, *more)

    monkeypatch.setattr(ReadProof, "of", stopping)
    with pytest.raises(KeyboardInterrupt):
        prove(folder, name=SINGLE, endpoint=endpoint)
    kept = sorted((folder.path / "tests").glob("unfinished.*"))
    assert [one.suffix for one in kept] == [".jsonl", ".work"]
    asked.append("stopped")
    run = prove(folder, name=SINGLE, endpoint=endpoint, is_resumed=True)
    assert asked == ["customer", "stopped", "newest orders"]
    assert set(verdicts(run).values()) == {"proven"}
    assert not any(one.exists() for one in kept)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_rows_items_and_load_are_not_done_twice(
    narrowed: Narrowed, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server that outlives the run; a killed process cleans up nothing."""
    folder = narrowed("customer", "newest orders")
    done: list[str] = []
    put, rows, make = put_all, SourceSnapshot.rows, StagedItems._make

    def killed(server: Any, items: Any) -> Any:
        for count in put(server, items):
            yield count
            raise Killed

    monkeypatch.setattr(proving, "put_all", killed)
    monkeypatch.setattr(proving, "_drop_tables", lambda *_: None)
    with pytest.raises(Killed):
        prove(folder, name=SINGLE, endpoint=endpoint)
    monkeypatch.undo()

    def noted(kind: str, run: Any) -> Any:
        def call(self: Any, *given: Any) -> Any:
            done.append(kind)
            return run(self, *given)

        return call

    counts: list[int] = []
    monkeypatch.setattr(SourceSnapshot, "rows", noted("rows", rows))
    monkeypatch.setattr(StagedItems, "_make", noted("items", make))

    def counted(*given: Any) -> Iterator[int]:
        for one in put(*given):
            counts.append(one)
            yield one

    monkeypatch.setattr(proving, "put_all", counted)
    run = prove(folder, name=SINGLE, endpoint=endpoint, is_resumed=True)
    assert set(verdicts(run).values()) == {"proven"}
    assert done == []
    items = sum(one.items for one in run.acceptance)
    # The items of one round of batches were there already.
    assert counts[-1] == items - BATCH_ITEMS * BATCHES_AT_ONCE
    assert [(one.processed, one.expected) for one in run.acceptance] == [
        (one.imported, one.processed) for one in run.acceptance
    ]
    assert not list((folder.path / "tests").glob("unfinished.*"))


@pytest.mark.soak
@pytest.mark.parametrize("moment", ["rows.db", "items", "loaded.json", "patterns"])
def test_a_killed_process_leaves_what_the_next_one_goes_on_with(
    shop_folder: Folder, tmp_path: Path, endpoint: str, moment: str
) -> None:
    shutil.copytree(shop_folder.path, tmp_path / "folder")
    command = [sys.executable, "-m", "partita.cli", "migrate", "test", str(tmp_path / "folder")]
    command += ["--endpoint", endpoint, "--json"]
    kept = tmp_path / "folder" / "tests" / "unfinished.model.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            if moment == "patterns":
                if kept.exists() and kept.read_bytes().count(b"\n") > 4:
                    break
            elif (kept.with_suffix(".work") / moment).exists():
                break
            time.sleep(0.005)
        process.kill()
    assert kept.exists()
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["summary"]["differs"] == 0
    assert not kept.exists()
    assert not kept.with_suffix(".work").exists()


def test_a_run_of_another_design_takes_nothing_over(
    narrowed: Narrowed, endpoint: str, tmp_path: object
) -> None:
    folder = narrowed("customer")
    head = RunHead(fingerprint="other", source="x", is_all=True, rows={}, statements={})
    path = folder.path / "tests" / "unfinished.model.single-table.jsonl"
    path.parent.mkdir(exist_ok=True)
    wrong = PatternProof(pattern="customer", operation="read", verdict="proven", cases=["made up"])
    path.write_bytes(msgspec.json.encode(head) + b"\n" + msgspec.json.encode(wrong) + b"\n{")
    run = prove(folder, name=SINGLE, endpoint=endpoint, is_resumed=True)
    assert run.functional[0].cases != ["made up"]


def test_the_command_fails_when_a_pattern_differs(narrowed: Narrowed, endpoint: str) -> None:
    folder = narrowed("open loans")
    wrong = with_access(
        read_design(folder, SINGLE), "open loans", lambda one: replace(one, filter=[])
    )
    folder.write_text("mutated.toml", to_toml(wrong))
    codes = {}
    for name in (SINGLE, "mutated.toml"):
        command = ["test", str(folder.path), "--model", name, "--endpoint", endpoint, "--json"]
        answer = CliRunner().invoke(migrate, command)
        codes[name] = (answer.exit_code, json.loads(answer.stdout)["summary"]["differs"])
    assert codes == {SINGLE: (0, 0), "mutated.toml": (1, 1)}
