"""Migration folders: settings that are read strictly, files that are written whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from partita.errors import PartitaError
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.schema.inventory import (
    Inventory,
    SourceColumn,
    SourceTable,
    read_inventory,
)
from partita_migrate.workspace.migration_folder import ANALYSIS, Folder

INVENTORY = Inventory(
    dialect="sqlite",
    server_version="3",
    database="shop.db",
    tables=[
        SourceTable(
            name="Größe", columns=[SourceColumn(name="id", type="INTEGER", kind="integer")]
        ),
    ],
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///shop.db"\n')
    return Folder.open(tmp_path)


def opened(tmp_path: Path, text: str) -> Folder:
    (tmp_path / "migration.toml").write_text(text)
    return Folder.open(tmp_path)


def test_what_is_written_reads_back(folder: Folder) -> None:
    folder.write_json("inventory.json", INVENTORY)
    assert read_inventory(folder) == INVENTORY
    assert (folder.path / "inventory.json").read_text().endswith("}\n")


def test_toml_keeps_its_comment_and_leaves_out_none(folder: Folder) -> None:
    folder.write_toml("x.toml", {"a": 1, "b": None, "c": {"d": None, "e": 2}}, "Two\n\nlines")
    assert (folder.path / "x.toml").read_text() == "# Two\n#\n# lines\n\na = 1\n\n[c]\ne = 2\n"
    assert folder.read_toml("x.toml", dict) == {"a": 1, "c": {"e": 2}}


def test_a_write_that_fails_leaves_what_was_there(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("plan.md", "before")

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PartitaError, match=r"Cannot write .*plan\.md: No space left on device\."):
        folder.write_text("plan.md", "after")
    assert (folder.path / "plan.md").read_text() == "before"
    assert sorted(path.name for path in folder.path.iterdir()) == ["migration.toml", "plan.md"]


def test_a_stage_that_has_not_run_is_named(folder: Folder) -> None:
    with pytest.raises(PartitaError, match="run `partita migrate plan` first"):
        read_inventory(folder)
    with pytest.raises(PartitaError, match="run `partita migrate analyze` first"):
        folder.read_json(ANALYSIS, Analysis)


def test_a_file_that_was_spoiled_is_named(folder: Folder) -> None:
    folder.write_text("inventory.json", '{"dialect": 5}')
    with pytest.raises(
        PartitaError, match=r"inventory\.json does not have the expected form: .*dialect"
    ):
        read_inventory(folder)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[source]\nurl", r"migration\.toml is not valid TOML: .*"),
        ("[sauce]\n", r"unknown section \[sauce\]; known are \[source\], \[goals\]"),
        ("source = 5", r"\[source\] does not have the expected form: Expected `object`"),
        ('[source]\nurl = "x"\nurll = 1', r"\[source\] does not have the expected form: .*`urll`"),
        ("[source]\nurl = 5", r"\[source\] does not have the expected form: Expected `str`"),
        ("[source]\nstatement_seconds_max = 0", r"Expected `float` > 0\.0"),
        ('[source]\npassword = "hush"', "keep it in an environment variable"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(PartitaError, match=sentence) as caught:
        _ = opened(tmp_path, text).source
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "migration.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PartitaError, match="is not UTF-8 text"):
        Folder.open(tmp_path)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(PartitaError, match=r"has no migration\.toml; write one with \[source\]"):
        Folder.open(tmp_path)
    with pytest.raises(PartitaError, match="is not a folder"):
        Folder.open(tmp_path / "nowhere")


def test_a_section_that_is_not_there_has_its_defaults(folder: Folder) -> None:
    class Settings(Struct):
        sample: int = 7

    assert folder.section("analyze", Settings).sample == 7
