"""Updates return the right new item, and never change the old one."""

from __future__ import annotations

from copy import deepcopy
from time import process_time

import pytest

from partita.database.expressions.name_resolution import Values
from partita.database.expressions.update import (
    INCORRECT_TYPE,
    INVALID_PATH,
    ITEM_TOO_LARGE,
    MISSING_OPERAND,
    compile_update,
)
from partita.database.item.attribute_values import Item
from partita.errors import ValidationException

ITEM: Item = {
    "pk": {"S": "a"},
    "s": {"S": "str"},
    "n": {"N": "5"},
    "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
    "m": {"M": {"x": {"S": "y"}, "z": {"N": "3"}}},
    "ss": {"SS": ["a", "b"]},
}
VALUES: Values = {
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":s": {"S": "new"},
    ":list": {"L": [{"S": "end"}]},
    ":a": {"SS": ["a"]},
    ":ab": {"SS": ["a", "b"]},
    ":c": {"SS": ["", "c"]},
    ":ns": {"NS": ["1"]},
}


def updated(text: str, item: Item = ITEM, values: Values = VALUES) -> Item:
    update = compile_update(text, {})
    update.check(values)
    before = deepcopy(item)
    after = update.apply(item, values)
    assert item == before
    return after


def changed(text: str) -> Item:
    """Attributes that differ after an update; a removed one is shown as an empty value."""
    after = updated(text)
    names = {*after, *ITEM}
    return {name: after.get(name, {}) for name in names if after.get(name) != ITEM.get(name)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SET a = :one", {"a": {"N": "1"}}),
        ("SET a = n", {"a": {"N": "5"}}),
        ("SET n = n + :one", {"n": {"N": "6"}}),
        ("SET n = (n - :one)", {"n": {"N": "4"}}),
        ("SET n = if_not_exists(n, :one)", {}),
        ("SET a = if_not_exists(a, :one) + n", {"a": {"N": "6"}}),
        ("SET a = if_not_exists(x, if_not_exists(y, :s))", {"a": {"S": "new"}}),
        ("SET a = list_append(:list, :list)", {"a": {"L": [{"S": "end"}, {"S": "end"}]}}),
        ("SET s = n, n = s", {"s": {"N": "5"}, "n": {"S": "str"}}),
        ("SET a = :one, b = a", None),
        ("SET m.x = :one", {"m": {"M": {"x": {"N": "1"}, "z": {"N": "3"}}}}),
        ("SET m.fresh = :one REMOVE m.x", {"m": {"M": {"z": {"N": "3"}, "fresh": {"N": "1"}}}}),
        ("SET l[1] = :s", {"l": {"L": [{"N": "0"}, {"S": "new"}, {"N": "2"}]}}),
        ("REMOVE s", {"s": {}}),
        ("REMOVE nothing", {}),
        ("REMOVE m.nothing", {}),
        ("REMOVE l[9]", {}),
        ("REMOVE l[0], l[2]", {"l": {"L": [{"N": "1"}]}}),
        ("REMOVE l[2], l[0]", {"l": {"L": [{"N": "1"}]}}),
        ("SET l[0] = l[1], l[1] = l[0]", {"l": {"L": [{"N": "1"}, {"N": "0"}, {"N": "2"}]}}),
        ("SET l[5] = :s REMOVE l[0]", {"l": {"L": [{"N": "1"}, {"N": "2"}, {"S": "new"}]}}),
        ("ADD n :one", {"n": {"N": "6"}}),
        ("ADD a :one", {"a": {"N": "1"}}),
        (
            "ADD m.z :two, m.q :one",
            {"m": {"M": {"x": {"S": "y"}, "z": {"N": "5"}, "q": {"N": "1"}}}},
        ),
        ("ADD ss :c", {"ss": {"SS": ["", "a", "b", "c"]}}),
        ("ADD ss :a", {}),
        ("DELETE ss :a", {"ss": {"SS": ["b"]}}),
        ("DELETE ss :ab", {"ss": {}}),
        ("DELETE nothing :ab", {}),
        (
            "set a = :one remove s add n :one delete ss :ab",
            {"a": {"N": "1"}, "s": {}, "n": {"N": "6"}, "ss": {}},
        ),
    ],
)
def test_an_update_changes_what_it_names(text: str, expected: Item | None) -> None:
    if expected is None:
        with pytest.raises(ValidationException, match=MISSING_OPERAND):
            updated(text)
    else:
        assert changed(text) == expected


def test_indexes_beyond_the_end_append_in_their_order() -> None:
    after = updated("SET l[9] = :one, l[7] = :s")
    assert after["l"]["L"][3:] == [{"S": "new"}, {"N": "1"}]


@pytest.mark.parametrize(
    "text",
    [
        "SET l[5] = :s REMOVE l[3]",
        "REMOVE l[3], l[4] SET l[9] = :s",
        "SET l[4] = :s DELETE l[3] :a",
    ],
)
def test_a_removal_from_beyond_the_end_leaves_what_is_appended(text: str) -> None:
    assert updated(text)["l"]["L"][3:] == [{"S": "new"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET a.b = :one", INVALID_PATH),
        ("SET a.b = nothing", INVALID_PATH),
        ("SET s.x = :one", INVALID_PATH),
        ("SET m[0] = :one", INVALID_PATH),
        ("SET l.x = :one", INVALID_PATH),
        ("SET l[9].x = :one", INVALID_PATH),
        ("REMOVE nothing.x", INVALID_PATH),
        ("REMOVE s[0]", INVALID_PATH),
        ("ADD nothing.x :one", INVALID_PATH),
        ("DELETE nothing.x :a", INVALID_PATH),
        ("SET a = nothing", MISSING_OPERAND),
        ("SET a = m.nothing", MISSING_OPERAND),
        ("SET a = n + nothing", MISSING_OPERAND),
        ("SET a = if_not_exists(x, y)", MISSING_OPERAND),
        ("SET a = if_not_exists(n, nothing)", MISSING_OPERAND),
        ("SET a = if_not_exists(n, if_not_exists(s, nothing))", MISSING_OPERAND),
        ("SET a = s + nothing", INCORRECT_TYPE),
        ("SET a = list_append(l, s)", INCORRECT_TYPE),
        ("ADD s :one", INCORRECT_TYPE),
        ("ADD ss :ns", INCORRECT_TYPE),
        ("DELETE ss :ns", INCORRECT_TYPE),
    ],
)
def test_an_update_that_does_not_fit_the_item_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        updated(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("0.1", "0.2", "0.3"),
        ("-5", "5", "0"),
        ("99999999999999999999999999999999999999", "1", "1" + "0" * 38),
        ("1" + "0" * 125, "-1" + "0" * 125, "0"),
        ("999999999999999999", "999999999999999999", "1999999999999999998"),
    ],
)
def test_sums_are_exact(left: str, right: str, total: str) -> None:
    values = {":l": {"N": left}, ":r": {"N": right}}
    assert updated("SET a = :l + :r", {}, values) == {"a": {"N": total}}


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("9" * 38 + "0" * 88, "9" * 38 + "0" * 88, "Number overflow"),
        ("1" + "0" * 50, "1", "Number overflow"),
    ],
)
def test_a_sum_that_is_no_number_of_the_service_is_refused(
    left: str, right: str, message: str
) -> None:
    with pytest.raises(ValidationException, match=message):
        updated("SET a = :l + :r", {}, {":l": {"N": left}, ":r": {"N": right}})


def test_touched_shows_only_the_paths_of_the_update() -> None:
    """Recorded: siblings are left out, and list elements move together."""
    update = compile_update("SET m.x = :s, l[2] = :s, l[0] = :s, l[9] = :s REMOVE n", {})
    after = update.apply(ITEM, VALUES)
    assert update.touched(after) == {
        "m": {"M": {"x": {"S": "new"}}},
        "l": {"L": [{"S": "new"}, {"S": "new"}]},
    }
    assert update.attributes == {"m", "l", "n"}
    assert set(update.paths) == {("m", "x"), ("l", 2), ("l", 0), ("l", 9), ("n",)}


def test_an_update_tells_whether_it_only_removes() -> None:
    assert compile_update("REMOVE x DELETE y :a", {}).only_removes
    assert not compile_update("REMOVE x ADD y :a", {}).only_removes


def test_an_update_tells_what_it_reads() -> None:
    update = compile_update("SET a = if_not_exists(b.c, :one) + d", {})
    assert set(update.operand_paths) == {("b", "c"), ("d",)}


@pytest.mark.parametrize("text", ["DELETE a :other", "ADD a :other"])
def test_large_sets_meet_in_little_time(text: str) -> None:
    item: Item = {"a": {"SS": [f"{number:06}" for number in range(50_000)]}}
    other = [f"{number:06}" for number in range(49_999, 55_000)]
    started = process_time()
    after = updated(text, item, {":other": {"SS": other}})["a"]["SS"]
    assert process_time() - started < 2
    assert len(after) == (49_999 if text.startswith("DELETE") else 55_000)
    assert after == sorted(set(after))


@pytest.mark.parametrize("kind", ["NS", "BS"])
def test_sets_stay_in_their_order(kind: str) -> None:
    sets = {"NS": (["-1", "2", "10"], ["-20", "3"]), "BS": (["AA==", "/w=="], ["fw==", "gA=="])}
    both = {"NS": ["-20", "-1", "2", "3", "10"], "BS": ["AA==", "fw==", "gA==", "/w=="]}
    old, more = sets[kind]
    after = updated("ADD a :more", {"a": {kind: old}}, {":more": {kind: more}})
    assert after["a"] == {kind: both[kind]}


AMPLIFIED = {
    "copies": ("SET ", "b{0} = a"),
    "longer lists": ("SET ", "b{0} = list_append(a, a)"),
    "unions": ("ADD ", "s{0} :large"),
}


@pytest.mark.parametrize(("section", "action"), AMPLIFIED.values(), ids=AMPLIFIED.keys())
def test_an_update_stops_when_it_has_made_more_than_an_item_holds(
    section: str, action: str
) -> None:
    item: Item = {
        "a": {"L": [{"N": "1"}] * 50_000},
        **{f"s{number}": {"SS": ["x"]} for number in range(150)},
    }
    large = {":large": {"SS": [f"{number:05}" for number in range(60_000)]}}
    text = section + ", ".join(action.format(number) for number in range(150))
    started = process_time()
    with pytest.raises(ValidationException, match=ITEM_TOO_LARGE):
        updated(text, item, large)
    assert process_time() - started < 3
