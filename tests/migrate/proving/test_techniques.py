"""What an expert would propose for reads without a key, proven on rows like everything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from partita.migrate.designing.model import model
from partita.migrate.folder import Folder
from partita.migrate.model.design import Attribute, Design
from partita.migrate.model.files import read_design, to_toml
from partita.migrate.proving.prove import test as prove

from . import public
from .conftest import designed, sqlite_database
from .shop import patterns_toml
from .test_prove import SINGLE, WIDE, verdicts, with_attributes

UNSERVED = {
    "tpcc": set(),
    "questions": {
        "by id or parent",
        "user by lower mail",
        "users who asked",
        "search",
        "delete a user",
    },
    "human resources": {"departments of a country", "name begins"},
    "airline": set(),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Folder]:
    found = {}
    for name, one in public.SCHEMAS.items():
        path = tmp_path_factory.mktemp("public")
        url = sqlite_database(path / "source.db", one.script("sqlite"))
        found[name] = designed(path / "folder", url, one.patterns)
    return found


def narrowed(folder: Folder, path: Path, schema: str, *names: str, more: str = "") -> Folder:
    """The same source, with some of its patterns and other expectations."""
    shutil.copytree(folder.path, path / "narrow")
    chosen = {name: public.SCHEMAS[schema].patterns[name] for name in names}
    narrow = path / "narrow"
    (narrow / "patterns.toml").write_text(patterns_toml(chosen))
    (narrow / "migration.toml").write_text((narrow / "migration.toml").read_text() + more)
    found = Folder.open(narrow)
    model(found)
    return found


def technique(design: Design, pattern: str) -> str:
    return next((one.name for one in design.techniques if pattern in one.patterns), "")


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        *((schema, SINGLE) for schema in public.SCHEMAS),
        *(pytest.param(schema, WIDE, marks=pytest.mark.soak) for schema in public.SCHEMAS),
    ],
)
def test_public_schemas_are_proven_or_honestly_unserved(
    folders: dict[str, Folder], endpoint: str, schema: str, name: str
) -> None:
    run = prove(folders[schema], name=name, endpoint=endpoint, is_all=True)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    assert {one.pattern for one in run.functional if one.verdict != "proven"} == UNSERVED[schema]
    assert run.keys == []
    assert [one.table for one in run.way_back if not one.is_exact] == []


def test_each_technique_has_its_price_its_limit_and_the_next_best(
    folders: dict[str, Folder],
) -> None:
    wide, single = (read_design(folders["airline"], name) for name in (WIDE, SINGLE))
    assert technique(wide, "airports") == "priced Scan"
    assert technique(single, "airports") == "one constant partition"
    assert technique(single, "not yet gone") == "sparse index"
    for one in [*wide.techniques, *single.techniques]:
        assert one.why and one.limit and one.next_best
        assert "read units a call" in one.cost


def test_the_latest_of_a_large_table_are_in_partitions_by_date(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(
        folders["tpcc"], tmp_path, "tpcc", "latest orders", "new order", "carrier",
        more="[expect.orders]\nrows = 50_000_000\n",
    )  # fmt: skip
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        assert technique(design, "latest orders") == "partitions by date"
        run = prove(folder, name=name, endpoint=endpoint)
        assert set(verdicts(run).values()) == {"proven"}
        (latest,) = [one for one in run.functional if one.pattern == "latest orders"]
        assert any("10 rows" in case for case in latest.cases)


def test_buckets_that_do_not_reach_the_newest_rows_are_refuted(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(
        folders["tpcc"], tmp_path, "tpcc", "latest orders",
        more="[expect.orders]\nrows = 50_000_000\n",
    )  # fmt: skip

    def short(one: Attribute) -> Attribute:
        return replace(one, last=one.first) if one.first else one

    design = with_attributes(read_design(folder, SINGLE), "orders", short)
    folder.write_text("mutated.toml", to_toml(design))
    run = prove(folder, name="mutated.toml", endpoint=endpoint)
    assert verdicts(run) == {"latest orders": "differs"}


def test_a_sparse_index_of_other_rows_is_refuted(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(folders["airline"], tmp_path, "airline", "not yet gone", "take off")

    def inverted(one: Attribute) -> Attribute:
        return replace(one, when=one.when.replace("is null", "is not null"))

    design = with_attributes(read_design(folder, SINGLE), "flights", inverted)
    folder.write_text("mutated.toml", to_toml(design))
    run = prove(folder, name="mutated.toml", endpoint=endpoint)
    assert verdicts(run)["not yet gone"] == "differs"
