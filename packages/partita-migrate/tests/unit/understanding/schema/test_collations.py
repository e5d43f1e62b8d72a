"""Tests that texts sort in keys as their weights do, for any weights."""

from __future__ import annotations

from itertools import zip_longest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partita.errors import PartitaError
from partita_migrate.model.keys.key_formats import field_text
from partita_migrate.model.keys.key_templates import SEPARATOR, escaped
from partita_migrate.understanding.schema.collation_keys import texts_of
from partita_migrate.understanding.schema.collations import (
    FOLDINGS,
    HIGH,
    Collation,
    CollationFolding,
    Pad,
    register_collation,
)
from partita_migrate.understanding.schema.inventory import SourceColumn
from partita_migrate.understanding.statements.literal_values import fold_of, not_in_keys

LETTERS = "\0\t\n !_-./09AaBbZz~éøßœžΩ日한\ue000\uffff😀\U0010fffe\U0010ffff"
WEIGHTS = st.fixed_dictionaries(
    {
        one: st.lists(st.sampled_from([b"\2\1", b"\2\2", b"\2\x0a", b"\x12\0", b"\x12\1", b"\x13\0",
                                       b"\xfb\x40\xe5\xe5", b"\xfb\xc3\xf6\0"]), max_size=3)
        for one in LETTERS if one != " "
    }
)  # fmt: skip
BLANK = b"\2\x0a"


def folding(weights: dict[str, bytes], pad: Pad) -> CollationFolding:
    texts, runs = texts_of(weights, 2)
    return CollationFolding(Collation(name="made_up", server="", pad=pad, texts=texts, runs=runs))


def units(weights: dict[str, bytes], text: str) -> list[bytes]:
    whole = b"".join(weights[one] for one in text)
    return [whole[at : at + 2] for at in range(0, len(whole), 2)]


@given(WEIGHTS, st.text(LETTERS, max_size=6), st.text(LETTERS, max_size=6))
def test_keys_sort_as_weights_do(held: dict[str, list[bytes]], one: str, other: str) -> None:
    weights = {letter: b"".join(parts) for letter, parts in held.items()} | {" ": BLANK}
    first, second = units(weights, one), units(weights, other)
    fold = folding(weights, "NO PAD")
    assume(fold.unpadded(" ") == " ")
    assert compared(fold(one), fold(other)) == (first > second) - (first < second)
    padded = list(zip_longest(first, second, fillvalue=BLANK))
    mine, theirs = [pair[0] for pair in padded], [pair[1] for pair in padded]
    fold = folding(weights, "PAD SPACE")
    assert compared(fold(one), fold(other)) == (mine > theirs) - (mine < theirs)


def compared(one: str, other: str) -> int:
    """Compares texts as parts of a template, with more text after them."""
    first, second = (escaped(text) + SEPARATOR for text in (one, other))
    return (first > second) - (first < second)


def test_what_a_character_becomes() -> None:
    weights = {"a": b"\x12\0", "A": b"\x12\0", "b": b"\x13\0", "B": b"\x13\0", " ": BLANK,
               "æ": b"\x12\0\x12\5", "e": b"\x12\5", "\x01": b"", "_": b"\2\x0b", "ä": b"\x12\1",
               "ch": b"\x14\0"}  # fmt: skip
    fold = folding(weights, "PAD SPACE")
    assert [fold(text) for text in ("aB", "a\x01b ", "", "ä", "a_b")] == [
        "AB", "AB", " ", f"A{HIGH}0", f"A {HIGH}0B",
    ]  # fmt: skip
    assert fold("æ") == fold("ae")
    assert fold("ache") == fold("a") + fold("ch") + fold("e") and fold("ch") > fold("b")


def test_like_compares_characters_and_not_letters() -> None:
    weights = {"a": b"\x12\0", "A": b"\x12\0", "E": b"\x12\5", "æ": b"\x12\0\x12\5", " ": BLANK}
    fold = folding(weights, "PAD SPACE")
    assert fold("æ") == fold("aE") and not fold.is_beginning("a", "æ")
    assert fold.is_beginning("a", "AE")
    ends = fold.ends_of_beginning("a")
    assert ends is not None and ends[0] < fold("a") < fold("aE") < ends[1]


def test_a_column_whose_collation_has_no_file_says_what_to_run() -> None:
    column = SourceColumn(name="email", type="varchar(9)", kind="string", is_case_insensitive=True)
    assert fold_of(column, "mariadb") == "ai", "an inventory of before"
    column = SourceColumn(
        name="email", type="varchar(9)", kind="string", is_case_insensitive=True, collation="x_ci"
    )
    assert "run `partita migrate plan` again" in not_in_keys(column, "mariadb")
    with pytest.raises(PartitaError, match=r"collations/x_ci\.json does not exist"):
        field_text("x_ci", {"S": "a"})


def test_a_collation_that_keys_cannot_say_gives_its_reason() -> None:
    register_collation(Collation(name="made_up_as_ci", server="", not_in_keys="accents count"))
    column = SourceColumn(name="a", type="text", kind="string", collation="made_up_as_ci")
    assert "made_up_as_ci" not in FOLDINGS
    assert not_in_keys(column, "mysql").endswith("accents count")
    assert not_in_keys(column, "postgresql") == ""
