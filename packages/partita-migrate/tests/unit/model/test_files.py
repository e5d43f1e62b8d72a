"""Tests model files: they are read back unchanged, and the same model gives the same text."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.propose import single_table
from partita_migrate.model.design import Design, Entity, ItemAttribute, KeyAttribute, TableDesign
from partita_migrate.model.keys.key_templates import template_fields
from partita_migrate.model.model_files import to_toml
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join

from ..games import expected, table_4


def read(text: str) -> Design:
    return msgspec.convert(tomllib.loads(text), Design)


def test_a_design_reads_back_as_it_was_written() -> None:
    design = single_table(expected(), table_4(), ModelSettings())
    text = to_toml(design, "A comment\nof two lines.")
    assert text.startswith("# A comment\n# of two lines.\n")
    assert read(text) == design


def test_every_attribute_is_one_line() -> None:
    lines = to_toml(single_table(expected(), table_4(), ModelSettings())).splitlines()
    assert '    { name = "PK", type = "S", template = "G#{GameId}" },' in lines


@given(st.text(), st.text(min_size=1))
def test_any_name_and_any_reason_survives(name: str, why: str) -> None:
    attribute = ItemAttribute(name=name, type="S", constant=why, why=why)
    design = Design(
        name=name,
        kind="denormalized",
        choices=[why],
        tables=[
            TableDesign(
                name="t",
                partition_key=KeyAttribute(name=name, type="S"),
                entities=[Entity(name=name, source=why, attributes=[attribute])],
            )
        ],
    )
    try:
        text = to_toml(design)
        text.encode()
    except UnicodeEncodeError:
        return
    assert read(text) == design


def test_a_word_that_the_format_does_not_know_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        read('name = "x"\nkind = "denormalized"\ncolour = "red"\n')


def test_a_template_says_its_fields_and_their_formats() -> None:
    fields = template_fields("abc#{at:%Y-%m-%dT%H:%M}#{hits:08}#{other.id}")
    assert list(fields) == [("at", "%Y-%m-%dT%H:%M"), ("hits", "08"), ("other.id", "")]


def test_a_step_of_several_columns() -> None:
    step = parse_join("a.x, a.y = s.b.u, s.b.v")
    assert step is not None
    assert step.before == [ColumnRef("a", "x"), ColumnRef("a", "y")]
    assert step.after == [ColumnRef("s.b", "u"), ColumnRef("s.b", "v")]
    assert parse_join("a.x, a.y = b.u") is None
