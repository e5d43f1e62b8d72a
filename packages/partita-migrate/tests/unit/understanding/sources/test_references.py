"""Tests foreign keys that a person adds to those of the schema."""

from __future__ import annotations

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.patterns.access_patterns import Patterns
from partita_migrate.understanding.patterns.pattern_files import parse, to_toml
from partita_migrate.understanding.schema.inventory import SourceTable
from partita_migrate.understanding.sources.undeclared_references import with_references

from ...schemas import foreign_key, inventory, table

ACTOR = table("actor", "id, name string", "id")
EDITS = table("edits", "id, actor_id, page", "id")
NOTES = table("notes", "a, b, edit", "a b")


def added(*written: str) -> dict[str, SourceTable]:
    return {one.name: one for one in with_references([ACTOR, EDITS, NOTES], written)}


def test_a_reference_is_a_foreign_key_like_others() -> None:
    found = added("edits.actor_id = actor.id", "edits.id, edits.page = notes.a, notes.b")
    assert found["edits"].foreign_keys == [
        foreign_key("actor_id", "actor.id"),
        foreign_key("id page", "notes.a b"),
    ]
    assert found["actor"] == ACTOR


def test_one_that_the_schema_declares_stays_one() -> None:
    declared = table(
        "edits", "id, actor_id", "id", foreign_keys=[foreign_key("actor_id", "actor.id")]
    )
    found = with_references([ACTOR, declared], ["edits.actor_id = actor.id"])
    assert found == [ACTOR, declared]


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("edits.actor_id", "write it as child.column = parent.column."),
        ("edits.id, notes.a = notes.a, notes.b", "write it as child.column = parent.column."),
        ("edit.actor_id = actor.id", "there is no table edit; did you mean edits?"),
        ("edits.actor = actor.id", "edits has no column actor; did you mean actor_id?"),
        ("edits.page = actor.name", "name of actor is neither its key nor unique."),
        ("edits.page = notes.a", "a of notes is neither its key nor unique."),
    ],
)
def test_one_that_cannot_be_is_refused_in_a_sentence(written: str, complaint: str) -> None:
    with pytest.raises(PartitaError) as refused:
        added(written)
    assert str(refused.value) == f"[source] references, {written!r}: {complaint}"


def test_what_was_mined_is_in_the_file() -> None:
    mined = Patterns(references=["edits.actor_id = actor.id"])
    content = to_toml(mined)
    assert content["references"] == ["edits.actor_id = actor.id"]
    assert parse('references = ["a.b = c.d"]', inventory(ACTOR)).references == ["a.b = c.d"]
