"""UpdateItem: the updated item, the returned attributes, and its errors.

The language of update expressions has its own file, test_expressions.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from .refusals import ENVELOPE, INVALID, VALIDATION, refusal

MISMATCH = "The provided key element does not match the schema"
STRINGS = ("pk", "sk", "lsi1sk")
MISSING_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"
BAD_PATH = "The document path provided in the update expression is invalid for update"
BAD_OPERAND = "An operand in the update expression has an incorrect data type"


def numbered(*numbers: int) -> dict[str, Any]:
    return {"L": [{"N": str(number)} for number in numbers]}


@pytest.fixture(scope="module")
def notes(module_table: Any) -> str:
    """A table with the string key pk."""
    return str(module_table())


@pytest.fixture(scope="module")
def indexed(module_table: Any) -> str:
    """pk + sk, and lsi1sk that is a key of lsi1 and gsi1, and the binary bidx of gsib."""
    everything = {"ProjectionType": "ALL"}
    name: str = module_table(
        sk="S",
        attributes={**dict.fromkeys(STRINGS, "S"), "bidx": "B"},
        LocalSecondaryIndexes=[
            {
                "IndexName": "lsi1",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "lsi1sk", "KeyType": "RANGE"},
                ],
                "Projection": everything,
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": name_of_index,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "Projection": everything,
            }
            for name_of_index, key in (("gsi1", "lsi1sk"), ("gsib", "bidx"))
        ],
    )
    return name


class Note:
    """The key of one item of the table `notes`, for one test."""

    def __init__(self, client: Any, table: str, pk: str) -> None:
        self.client = client
        self.table = table
        self.key = {"pk": {"S": pk}}

    def put(self, **attributes: Any) -> None:
        self.client.put_item(TableName=self.table, Item={**self.key, **attributes})

    def update(self, expression: str | None = None, **more: Any) -> Any:
        return self.client.update_item(**self.request(expression, **more))

    def refused(self, expression: str | None = None, **more: Any) -> tuple[str, str]:
        return refusal(self.client.update_item, **self.request(expression, **more))

    def request(self, expression: str | None = None, **more: Any) -> dict[str, Any]:
        """The values are given by their letters: `v={"S": "x"}` is `:v`."""
        values = {f":{name}": more.pop(name) for name in list(more) if name.islower()}
        if values:
            more["ExpressionAttributeValues"] = values
        if expression is not None:
            more["UpdateExpression"] = expression
        return {"TableName": self.table, "Key": self.key, **more}

    @property
    def attributes(self) -> Any:
        """Returns the stored attributes besides the key, or None."""
        answer = self.client.get_item(TableName=self.table, Key=self.key, ConsistentRead=True)
        item = answer.get("Item")
        return item and {name: value for name, value in item.items() if name != "pk"}


@pytest.fixture
def note(client: Any, notes: str, request: pytest.FixtureRequest) -> Note:
    return Note(client, notes, request.node.nodeid)


# --- what an update does ---


def test_an_update_creates_a_missing_item(note: Note) -> None:
    note.update("SET a = :v", v={"S": "new"})
    assert note.attributes == {"a": {"S": "new"}}


def test_an_update_keeps_the_other_attributes(note: Note) -> None:
    note.put(a={"S": "old"}, b={"S": "kept"})
    note.update("SET a = :v", v={"S": "new"})
    assert note.attributes == {"a": {"S": "new"}, "b": {"S": "kept"}}


def test_an_update_without_an_expression_creates_an_item_of_its_key(note: Note) -> None:
    # recorded
    assert "Attributes" not in note.update(ReturnValues="UPDATED_NEW")
    assert note.attributes == {}


def test_empty_attribute_updates_create_an_item_of_its_key(note: Note) -> None:
    # recorded by Alternator's tests on AWS
    note.update(AttributeUpdates={})
    assert note.attributes == {}


@pytest.mark.parametrize(
    "expression",
    ["REMOVE a", "REMOVE a.b", "REMOVE a[0]", "DELETE a :v", "REMOVE a.b DELETE c.d :v"],
)
def test_an_update_that_only_removes_does_not_create_an_item(note: Note, expression: str) -> None:
    # recorded by Alternator's tests on AWS
    values = {"v": {"SS": ["x"]}} if ":v" in expression else {}
    assert "Attributes" not in note.update(expression, ReturnValues="ALL_NEW", **values)
    assert note.attributes is None


@pytest.mark.parametrize(
    "expression", ["SET y = :v REMOVE x.a", "REMOVE x[0] SET y = :v", "ADD y :v REMOVE x.a"]
)
def test_an_update_that_also_writes_looks_at_the_paths_it_removes(
    note: Note, expression: str
) -> None:
    # observed on DynamoDB Local
    assert note.refused(expression, v={"SS": ["x"]}) == (VALIDATION, BAD_PATH)
    assert note.attributes is None


def test_a_removal_from_beyond_the_end_of_a_list_leaves_what_is_appended(note: Note) -> None:
    note.put(a=numbered(1))
    note.update("SET a[5] = :v REMOVE a[1]", v={"N": "2"})
    assert note.attributes == {"a": numbered(1, 2)}


def test_a_default_that_is_missing_is_refused_where_it_is_not_needed(note: Note) -> None:
    # observed on DynamoDB Local
    note.put(a={"N": "1"})
    assert note.refused("SET b = if_not_exists(a, c)") == (VALIDATION, MISSING_ATTRIBUTE)
    assert note.attributes == {"a": {"N": "1"}}


DONE: dict[str, tuple[dict[str, Any], str, dict[str, Any], dict[str, Any]]] = {
    "a sum": ({"n": {"N": "10"}}, "SET n = n + :v", {"v": {"N": "5"}}, {"n": {"N": "15"}}),
    "a difference": ({"n": {"N": "10"}}, "SET n = n - :v", {"v": {"N": "3"}}, {"n": {"N": "7"}}),
    "a difference in parentheses": (
        {"n": {"N": "10"}},
        "SET n = (n - :v)",
        {"v": {"N": "3"}},
        {"n": {"N": "7"}},
    ),
    "an exact sum": (
        {"n": {"N": "0.1"}},
        "SET n = n + :v",
        {"v": {"N": "0.2"}},
        {"n": {"N": "0.3"}},
    ),
    "a sum of 38 digits": (
        {"n": {"N": "99999999999999999999999999999999999998"}},
        "SET n = n + :v",
        {"v": {"N": "1"}},
        {"n": {"N": "9" * 38}},
    ),
    "the first of two values": (
        {"n": {"N": "1"}},
        "SET n = if_not_exists(n, :v)",
        {"v": {"N": "2"}},
        {"n": {"N": "1"}},
    ),
    "the second of two values": (
        {},
        "SET n = if_not_exists(n, :v)",
        {"v": {"N": "2"}},
        {"n": {"N": "2"}},
    ),
    "another attribute instead": (
        {"m": {"N": "3"}},
        "SET n = if_not_exists(n, m)",
        {},
        {"m": {"N": "3"}, "n": {"N": "3"}},
    ),
    "a counter from nothing": (
        {},
        "SET n = if_not_exists(n, :z) - :v",
        {"v": {"N": "2"}, "z": {"N": "0"}},
        {"n": {"N": "-2"}},
    ),
    "an appended list": (
        {"l": numbered(1, 2)},
        "SET l = list_append(l, :v)",
        {"v": numbered(3, 4)},
        {"l": numbered(1, 2, 3, 4)},
    ),
    "a prepended list": (
        {"l": numbered(1, 2)},
        "SET l = list_append(:v, l)",
        {"v": numbered(3, 4)},
        {"l": numbered(3, 4, 1, 2)},
    ),
    "a list from nothing": (
        {},
        "SET l = list_append(if_not_exists(l, :z), :v)",
        {"v": numbered(1), "z": numbered()},
        {"l": numbered(1)},
    ),
    # recorded: the operands are those of the item before the update
    "operands from before the update": (
        {"a": {"N": "1"}},
        "SET a = :v, b = a",
        {"v": {"N": "2"}},
        {"a": {"N": "2"}, "b": {"N": "1"}},
    ),
    "a member of a map": (
        {"m": {"M": {"x": {"N": "1"}}}},
        "SET m.y = :v",
        {"v": {"N": "2"}},
        {"m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}},
    ),
    "an element": (
        {"l": numbered(1, 2)},
        "SET l[1] = :v",
        {"v": {"N": "9"}},
        {"l": numbered(1, 9)},
    ),
    # recorded: no padding
    "an element beyond the end": (
        {"l": numbered(1, 2, 3)},
        "SET l[5] = :v",
        {"v": {"N": "9"}},
        {"l": numbered(1, 2, 3, 9)},
    ),
    "an element of an empty list": (
        {"l": numbered()},
        "SET l[0] = :v",
        {"v": {"N": "9"}},
        {"l": numbered(9)},
    ),
    # Alternator's tests on AWS: in the order of their indexes
    "elements beyond the end": (
        {"l": numbered(1)},
        "SET l[84] = :v, l[37] = :w, l[17] = :x",
        {"v": {"N": "84"}, "w": {"N": "37"}, "x": {"N": "17"}},
        {"l": numbered(1, 17, 37, 84)},
    ),
    "an element removed": ({"l": numbered(1, 2, 3)}, "REMOVE l[1]", {}, {"l": numbered(1, 3)}),
    "elements removed": (
        {"l": numbered(0, 1, 2, 3, 4)},
        "REMOVE l[1], l[3]",
        {},
        {"l": numbered(0, 2, 4)},
    ),
    "an element removed beyond the end": (
        {"l": numbered(1)},
        "REMOVE l[17]",
        {},
        {"l": numbered(1)},
    ),
    "indexes from before the update": (
        {"l": numbered(0, 1, 2, 3)},
        "REMOVE l[1] SET l[3] = :v",
        {"v": {"N": "9"}},
        {"l": numbered(0, 2, 9)},
    ),
    "a missing attribute removed": ({"a": {"N": "1"}}, "REMOVE b", {}, {"a": {"N": "1"}}),
    "a missing member removed": (
        {"m": {"M": {"x": {"N": "1"}}}},
        "REMOVE m.y",
        {},
        {"m": {"M": {"x": {"N": "1"}}}},
    ),
    "a member removed": (
        {"m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}},
        "REMOVE m.y",
        {},
        {"m": {"M": {"x": {"N": "1"}}}},
    ),
    "a number added": ({"n": {"N": "1"}}, "ADD n :v", {"v": {"N": "2"}}, {"n": {"N": "3"}}),
    "a number added to nothing": ({}, "ADD n :v", {"v": {"N": "2"}}, {"n": {"N": "2"}}),
    "a set added": (
        {"s": {"SS": ["b"]}},
        "ADD s :v",
        {"v": {"SS": ["a", "b"]}},
        {"s": {"SS": ["a", "b"]}},
    ),
    "an empty string added": (
        {"s": {"SS": ["a"]}},
        "ADD s :v",
        {"v": {"SS": [""]}},
        {"s": {"SS": ["", "a"]}},
    ),
    "a set added to nothing": ({}, "ADD s :v", {"v": {"NS": ["2"]}}, {"s": {"NS": ["2"]}}),
    "a set added in a map": (
        {"m": {"M": {}}},
        "ADD m.s :v",
        {"v": {"NS": ["2"]}},
        {"m": {"M": {"s": {"NS": ["2"]}}}},
    ),
    "members deleted": (
        {"s": {"NS": ["1", "2", "3"]}},
        "DELETE s :v",
        {"v": {"NS": ["2.0", "7"]}},
        {"s": {"NS": ["1", "3"]}},
    ),
    "all members deleted": ({"s": {"SS": ["a"]}}, "DELETE s :v", {"v": {"SS": ["a"]}}, {}),
    "members deleted of nothing": (
        {"a": {"N": "1"}},
        "DELETE s :v",
        {"v": {"SS": ["a"]}},
        {"a": {"N": "1"}},
    ),
    "all four": (
        {"a": {"N": "1"}, "b": {"N": "1"}, "c": {"SS": ["x", "y"]}},
        "set d = :v remove a add b :v delete c :w",
        {"v": {"N": "5"}, "w": {"SS": ["x"]}},
        {"b": {"N": "6"}, "c": {"SS": ["y"]}, "d": {"N": "5"}},
    ),
    "parentheses everywhere": (
        {"b": {"M": {"a": {"N": "1"}}}, "c": numbered(0, 2)},
        "set b.c=((c[1])+(b.a))",
        {},
        {"b": {"M": {"a": {"N": "1"}, "c": {"N": "3"}}}, "c": numbered(0, 2)},
    ),
}


@pytest.mark.parametrize("case", DONE)
def test_an_expression_makes_the_new_item(note: Note, case: str) -> None:
    before, expression, values, after = DONE[case]
    note.put(**before)
    note.update(expression, **values)
    assert note.attributes == after


# --- what it returns ---

OLD: dict[str, Any] = {"a": {"S": "old"}, "b": {"S": "kept"}, "m": {"M": {"x": {"N": "1"}}}}
RETURNED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("SET a = :v", "NONE", None),
    ("SET a = :v", "ALL_OLD", OLD),
    ("SET a = :v", "ALL_NEW", {**OLD, "a": {"S": "new"}}),
    ("SET a = :v", "UPDATED_OLD", {"a": {"S": "old"}}),
    ("SET a = :v", "UPDATED_NEW", {"a": {"S": "new"}}),
    ("SET b = b", "UPDATED_NEW", {"b": {"S": "kept"}}),
    ("SET c = :v", "UPDATED_OLD", None),
    ("SET c = :v", "UPDATED_NEW", {"c": {"S": "new"}}),
    ("REMOVE b", "UPDATED_OLD", {"b": {"S": "kept"}}),
    ("REMOVE b", "UPDATED_NEW", None),
    ("SET m.y = :v", "UPDATED_NEW", {"m": {"M": {"y": {"S": "new"}}}}),
    ("SET m.y = :v", "UPDATED_OLD", None),
    ("SET m.x = :v", "UPDATED_OLD", {"m": {"M": {"x": {"N": "1"}}}}),
    (
        "SET m.x = :v, m.y = :v",
        "UPDATED_NEW",
        {"m": {"M": {"x": {"S": "new"}, "y": {"S": "new"}}}},
    ),
    ("SET a = :v REMOVE b", "UPDATED_OLD", {"a": {"S": "old"}, "b": {"S": "kept"}}),
    ("SET a = :v REMOVE b", "UPDATED_NEW", {"a": {"S": "new"}}),
]


@pytest.mark.parametrize(("expression", "values", "expected"), RETURNED)
def test_return_values_choose_what_is_returned(
    note: Note, expression: str, values: str, expected: dict[str, Any] | None
) -> None:
    note.put(**OLD)
    used = {"v": {"S": "new"}} if ":v" in expression else {}
    answer = note.update(expression, ReturnValues=values, **used)
    if values.startswith("ALL") and expected is not None:
        expected = {**note.key, **expected}
    assert answer.get("Attributes") == expected


@pytest.mark.parametrize("values", ["ALL_OLD", "UPDATED_OLD"])
def test_an_item_that_was_not_there_has_no_old_values(note: Note, values: str) -> None:
    assert "Attributes" not in note.update("SET a = :v", ReturnValues=values, v={"S": "x"})


def test_all_new_of_a_created_item_has_its_key(note: Note) -> None:
    answer = note.update("SET a = :v", ReturnValues="ALL_NEW", v={"S": "x"})
    assert answer["Attributes"] == {**note.key, "a": {"S": "x"}}


def test_updated_new_squeezes_the_elements_that_were_written(note: Note) -> None:
    # dynalite: only the written elements, in the order of their indexes
    note.put(l=numbered(0, 1, 2, 3), m={"M": {"a": {"N": "2"}, "z": {"N": "0"}}})
    answer = note.update(
        "SET l[3] = :w, l[1] = :v, m.c = :v, m.a = :v",
        ReturnValues="UPDATED_NEW",
        v={"N": "5"},
        w={"N": "6"},
    )
    assert answer["Attributes"] == {
        "l": numbered(5, 6),
        "m": {"M": {"a": {"N": "5"}, "c": {"N": "5"}}},
    }


# --- conditions ---


def test_a_failed_condition_changes_nothing(note: Note) -> None:
    note.put(a={"S": "old"})
    assert note.refused(
        "SET a = :v", ConditionExpression="a = :w", v={"S": "new"}, w={"S": "other"}
    ) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert note.attributes == {"a": {"S": "old"}}


@pytest.mark.parametrize(
    "condition", ["attribute_exists(pk)", "score > :v", "attribute_exists(pk) AND score > :v"]
)
def test_a_failed_condition_does_not_create_an_item(note: Note, condition: str) -> None:
    # recorded
    assert note.refused("ADD score :v", ConditionExpression=condition, v={"N": "1"}) == (
        "ConditionalCheckFailedException",
        "The conditional request failed",
    )
    assert note.attributes is None


def test_a_condition_can_ask_for_a_missing_item(note: Note) -> None:
    answer = note.update(
        "SET a = :v",
        ConditionExpression="attribute_not_exists(pk)",
        ReturnValues="ALL_NEW",
        v={"S": "x"},
    )
    assert answer["Attributes"] == {**note.key, "a": {"S": "x"}}


def test_a_failed_condition_can_return_the_item_that_is_there(note: Note) -> None:
    note.put(a={"S": "old"}, b={"N": "1"})
    with pytest.raises(ClientError) as failed:
        note.update(
            "SET a = :v",
            ConditionExpression="a = :v",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            v={"S": "new"},
        )
    assert failed.value.response["Item"] == {**note.key, "a": {"S": "old"}, "b": {"N": "1"}}


@pytest.mark.parametrize("expected", [{"a": {"Value": {"S": "x"}}}, {"a": {"Exists": False}}])
def test_expected_guards_an_update(note: Note, expected: dict[str, Any]) -> None:
    note.put(a={"S": "old"})
    changes = {"a": {"Value": {"S": "new"}}}
    code, _ = note.refused(AttributeUpdates=changes, Expected=expected)
    assert code == "ConditionalCheckFailedException"
    note.update(AttributeUpdates=changes, Expected={"a": {"Value": {"S": "old"}}})
    assert note.attributes == {"a": {"S": "new"}}


# --- legacy updates ---

LEGACY: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a value without an action": ({}, {"a": {"Value": {"S": "x"}}}, {"a": {"S": "x"}}),
    "PUT": (
        {"a": {"S": "old"}},
        {"a": {"Action": "PUT", "Value": {"S": "x"}}},
        {"a": {"S": "x"}},
    ),
    "ADD a number": (
        {"n": {"N": "1"}},
        {"n": {"Action": "ADD", "Value": {"N": "2"}}},
        {"n": {"N": "3"}},
    ),
    "ADD to nothing": ({}, {"n": {"Action": "ADD", "Value": {"N": "2"}}}, {"n": {"N": "2"}}),
    "ADD a set": (
        {"s": {"SS": ["b"]}},
        {"s": {"Action": "ADD", "Value": {"SS": ["a"]}}},
        {"s": {"SS": ["a", "b"]}},
    ),
    # dynalite: a list is appended
    "ADD a list": (
        {"l": numbered(1)},
        {"l": {"Action": "ADD", "Value": numbered(2)}},
        {"l": numbered(1, 2)},
    ),
    "DELETE an attribute": (
        {"a": {"S": "x"}, "b": {"S": "y"}},
        {"a": {"Action": "DELETE"}},
        {"b": {"S": "y"}},
    ),
    "DELETE members": (
        {"s": {"SS": ["a", "b"]}},
        {"s": {"Action": "DELETE", "Value": {"SS": ["a"]}}},
        {"s": {"SS": ["b"]}},
    ),
    "DELETE the last member": (
        {"s": {"SS": ["a"]}},
        {"s": {"Action": "DELETE", "Value": {"SS": ["a"]}}},
        {},
    ),
    "DELETE of nothing": ({"a": {"S": "x"}}, {"s": {"Action": "DELETE"}}, {"a": {"S": "x"}}),
    "a name with a dot": ({}, {"a.b": {"Value": {"S": "x"}}}, {"a.b": {"S": "x"}}),
}


@pytest.mark.parametrize("case", LEGACY)
def test_attribute_updates_make_the_new_item(note: Note, case: str) -> None:
    before, updates, after = LEGACY[case]
    note.put(**before)
    note.update(AttributeUpdates=updates)
    assert note.attributes == after


BAD_UPDATES: dict[str, tuple[dict[str, Any], str]] = {
    # dynalite
    "no value": (
        {"Action": "PUT"},
        "Only DELETE action is allowed when no attribute value is specified",
    ),
    "nothing": ({}, "Only DELETE action is allowed when no attribute value is specified"),
    **{
        f"DELETE {kind}": (
            {"Action": "DELETE", "Value": value},
            f"DELETE action with value is not supported for the type {kind}",
        )
        for kind, value in {
            "S": {"S": "x"},
            "N": {"N": "1"},
            "L": {"L": []},
            "BOOL": {"BOOL": True},
        }.items()
    },
    **{
        f"ADD {kind}": (
            {"Action": "ADD", "Value": value},
            f"ADD action is not supported for the type {kind}",
        )
        for kind, value in {
            "S": {"S": "x"},
            "B": {"B": b"x"},
            "NULL": {"NULL": True},
            "BOOL": {"BOOL": True},
            "M": {"M": {}},
        }.items()
    },
}


@pytest.mark.parametrize("case", BAD_UPDATES)
def test_a_malformed_attribute_update_is_refused(note: Note, case: str) -> None:
    update, text = BAD_UPDATES[case]
    assert note.refused(AttributeUpdates={"a": update}) == (VALIDATION, ENVELOPE + INVALID + text)


@pytest.mark.parametrize(
    "update",
    [
        {"Action": "ADD", "Value": {"N": "1"}},
        {"Action": "ADD", "Value": {"NS": ["1"]}},
        {"Action": "DELETE", "Value": {"NS": ["1"]}},
    ],
)
def test_an_attribute_update_must_fit_the_stored_type(note: Note, update: dict[str, Any]) -> None:
    # dynalite
    note.put(a={"SS": ["x"]})
    assert note.refused(AttributeUpdates={"a": update}) == (
        VALIDATION,
        "Type mismatch for attribute to update",
    )


def test_attribute_updates_cannot_change_the_key(note: Note) -> None:
    assert note.refused(AttributeUpdates={"pk": {"Value": {"S": "x"}}}) == (
        VALIDATION,
        INVALID + "Cannot update attribute pk. This attribute is part of the key",
    )


# --- refusals while the update is applied: without the prefix ---

BEFORE: dict[str, Any] = {
    "s": {"S": "x"},
    "n": {"N": "1"},
    "l": numbered(1),
    "m": {"M": {"x": {"N": "1"}}},
    "ss": {"SS": ["x"]},
}
UNAPPLIED: dict[str, tuple[str, dict[str, Any], str]] = {
    # dynalite
    "a missing operand": ("SET a = b", {}, MISSING_ATTRIBUTE),
    "an attribute of itself": ("SET a = a", {}, MISSING_ATTRIBUTE),
    "a missing operand of a sum": ("SET a = b + :v", {"v": {"N": "1"}}, MISSING_ATTRIBUTE),
    "a missing list": ("SET a = list_append(b, :v)", {"v": numbered()}, MISSING_ATTRIBUTE),
    "a missing member": ("SET a = m.y", {}, MISSING_ATTRIBUTE),
    "a missing element": ("SET a = l[7]", {}, MISSING_ATTRIBUTE),
    "an attribute set in the same update": (
        "SET a = :v, b = a",
        {"v": {"N": "1"}},
        MISSING_ATTRIBUTE,
    ),
    "a sum with a string": ("SET a = s + :v", {"v": {"N": "1"}}, BAD_OPERAND),
    "a difference with a list": ("SET a = n - l", {}, BAD_OPERAND),
    "a string appended": ("SET a = list_append(l, s)", {}, BAD_OPERAND),
    "a number added to a string": ("ADD s :v", {"v": {"N": "1"}}, BAD_OPERAND),
    "a set added to another kind of set": ("ADD ss :v", {"v": {"NS": ["1"]}}, BAD_OPERAND),
    "a set deleted from a number": ("DELETE n :v", {"v": {"NS": ["1"]}}, BAD_OPERAND),
    "a member of nothing": ("SET a.b = :v", {"v": {"N": "1"}}, BAD_PATH),
    "a member of a member of nothing": ("SET m.y.z = :v", {"v": {"N": "1"}}, BAD_PATH),
    "a member of a string": ("SET s.b = :v", {"v": {"N": "1"}}, BAD_PATH),
    "a member of a list": ("SET l.b = :v", {"v": {"N": "1"}}, BAD_PATH),
    "an element of a map": ("SET m[0] = :v", {"v": {"N": "1"}}, BAD_PATH),
    "a member of nothing removed": ("REMOVE a.b", {}, BAD_PATH),
    "an element of nothing removed": ("REMOVE a[0]", {}, BAD_PATH),
    "added to a member of nothing": ("ADD a.b :v", {"v": {"N": "1"}}, BAD_PATH),
    "deleted from a member of nothing": ("DELETE a.b :v", {"v": {"NS": ["1"]}}, BAD_PATH),
}


@pytest.mark.parametrize("case", UNAPPLIED)
def test_an_update_that_cannot_be_applied_changes_nothing(note: Note, case: str) -> None:
    expression, values, text = UNAPPLIED[case]
    note.put(**BEFORE)
    assert note.refused(expression, **values) == (VALIDATION, text)
    assert note.attributes == BEFORE


@pytest.mark.parametrize(
    ("expression", "old", "text"),
    [
        ("SET n = n + :v", "9.9e125", "Number overflow"),
        ("ADD n :v", "9.9e125", "Number overflow"),
        # Alternator's tests on AWS: a sum of 39 digits or more is an overflow too
        ("SET n = n + :o", "1e50", "Number overflow"),
    ],
)
def test_a_sum_must_stay_in_the_range_of_numbers(
    note: Note, expression: str, old: str, text: str
) -> None:
    note.put(n={"N": old})
    values = {"v": {"N": "9.9e125"}} if ":v" in expression else {"o": {"N": "1"}}
    code, message = note.refused(expression, **values)
    assert code == VALIDATION
    assert text in message


# --- parameters and expressions ---

SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    # recorded
    "both kinds of update": (
        {"AttributeUpdates": {"a": {"Value": {"S": "x"}}}, "UpdateExpression": "REMOVE a"},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributeUpdates} Expression parameters: {UpdateExpression}",
    ),
    # dynalite
    "both kinds of everything": (
        {
            "AttributeUpdates": {},
            "Expected": {},
            "UpdateExpression": "",
            "ConditionExpression": "",
        },
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributeUpdates, Expected} "
        "Expression parameters: {UpdateExpression, ConditionExpression}",
    ),
    "an empty update": (
        {"UpdateExpression": ""},
        "Invalid UpdateExpression: The expression can not be empty;",
    ),
    "an empty condition": (
        {"UpdateExpression": "REMOVE a", "ConditionExpression": ""},
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "garbage": (
        {"UpdateExpression": "INVALID SYNTAX"},
        'Invalid UpdateExpression: Syntax error; token: "INVALID", near: "INVALID SYNTAX"',
    ),
    "an unused name": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": {"#unused": "b"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
    "an unused value": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeValues": {":unused": {"S": "x"}}},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
    ),
    "an undefined value": (
        {"UpdateExpression": "SET a = :v"},
        "Invalid UpdateExpression: An expression attribute value used in expression is not "
        "defined; attribute value: :v",
    ),
    "an undefined value in the condition": (
        {"UpdateExpression": "REMOVE a", "ConditionExpression": "a = :v"},
        "Invalid ConditionExpression: An expression attribute value used in expression is not "
        "defined; attribute value: :v",
    ),
    "an undefined name": (
        {"UpdateExpression": "REMOVE #a"},
        "Invalid UpdateExpression: An expression attribute name used in the document path is not "
        "defined; attribute name: #a",
    ),
    "a name without #": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": {"a": "b"}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "a value without :": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeValues": {"a": {"S": "x"}}},
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "a"',
    ),
    "names without an expression": (
        {"ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "values without an expression": (
        {"ExpressionAttributeValues": {":a": {"S": "x"}}},
        "ExpressionAttributeValues can only be specified when using expressions",
    ),
    "values with AttributeUpdates": (
        {"ExpressionAttributeValues": {":a": {"S": "x"}}, "AttributeUpdates": {}},
        "ExpressionAttributeValues can only be specified when using expressions",
    ),
    "no names": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
    "no values": (
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    ),
    "an attribute twice": (
        {
            "UpdateExpression": "SET #v = :a, #v = :b",
            "ExpressionAttributeNames": {"#v": "v"},
            "ExpressionAttributeValues": {":a": {"N": "1"}, ":b": {"N": "2"}},
        },
        "Invalid UpdateExpression: Two document paths overlap with each other; must remove or "
        "rewrite one of these paths; path one: [v], path two: [v]",
    ),
    # The order of the checks (dynalite).
    "the update before the condition": (
        {"UpdateExpression": "", "ConditionExpression": ""},
        "Invalid UpdateExpression: The expression can not be empty;",
    ),
    "names before the update": (
        {"UpdateExpression": "", "ExpressionAttributeNames": {"a": "b"}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "names before values": (
        {
            "UpdateExpression": "",
            "ExpressionAttributeNames": {"a": "b"},
            "ExpressionAttributeValues": {},
        },
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "the condition before what is unused": (
        {
            "UpdateExpression": "REMOVE a",
            "ConditionExpression": "",
            "ExpressionAttributeNames": {"#unused": "b"},
        },
        "Invalid ConditionExpression: The expression can not be empty;",
    ),
    "unused names before unused values": (
        {
            "UpdateExpression": "REMOVE a",
            "ExpressionAttributeNames": {"#unused": "b"},
            "ExpressionAttributeValues": {":unused": {"S": "x"}},
        },
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_wrong_parameters_are_refused(note: Note, case: str) -> None:
    request, text = SHAPES[case]
    assert note.refused(**request) == (VALIDATION, ENVELOPE + text)


@pytest.mark.parametrize("case", SHAPES)
def test_parameters_are_checked_before_the_table_is_looked_up(client: Any, case: str) -> None:
    request, text = SHAPES[case]
    key = {"pk": {"S": "a"}}
    assert refusal(client.update_item, TableName="no_such_table", Key=key, **request) == (
        VALIDATION,
        ENVELOPE + text,
    )


NESTED_LEVELS = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def test_a_value_nested_too_deep_is_refused_before_the_condition_is_evaluated(note: Note) -> None:
    # recorded
    assert note.refused("REMOVE a", ConditionExpression="b = :v", v=nested(32)) == (
        VALIDATION,
        ENVELOPE + NESTED_LEVELS,
    )
    code, _ = note.refused("REMOVE a", ConditionExpression="b = :v", v=nested(31))
    assert code == "ConditionalCheckFailedException"


# --- members and their constraints (recorded) ---

KEY = {"pk": {"S": "a"}}
SHORT_NAME = (
    "Value at 'TableName' failed to satisfy constraint: "
    "Member must have length greater than or equal to 1"
)
BAD_RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
OLD_SHORT_NAME = (
    "Value '' at 'tableName' failed to satisfy constraint: "
    "Member must have length greater than or equal to 1"
)
OLD_NO_KEY = "Value null at 'key' failed to satisfy constraint: Member must not be null"
OLD_CAPACITY = (
    "Value 'INVALID' at 'returnConsumedCapacity' failed to satisfy constraint: "
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
OLD_RETURN_VALUES = (
    "Value 'INVALID' at 'returnValues' failed to satisfy constraint: Member must satisfy enum "
    "value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
OLD_OPERATOR = (
    "Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: "
    "Member must satisfy enum value set: [OR, AND]"
)
TWO_EXPECTED = {"a": {"Value": {"S": "x"}}, "b": {"Value": {"S": "x"}}}
MEMBER_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "empty table name and key": (
        {"TableName": "", "Key": {}},
        f"1 validation error detected: {SHORT_NAME}",
    ),
    # The service stops at the first here, unlike in PutItem.
    "two unknown enum values": (
        {
            "TableName": "no_such_table",
            "Key": KEY,
            "ReturnValues": "INVALID",
            "ReturnConsumedCapacity": "INVALID",
        },
        f"1 validation error detected: {BAD_RETURN_VALUES}",
    ),
    "no key": (
        {"TableName": "no_such_table"},
        f"1 validation error detected: {OLD_NO_KEY}",
    ),
    # Without a key the older wording is used for everything.
    "empty table name and no key": (
        {"TableName": ""},
        f"2 validation errors detected: {OLD_SHORT_NAME}; {OLD_NO_KEY}",
    ),
    "everything and no key": (
        {"TableName": "", "ReturnConsumedCapacity": "INVALID", "ReturnValues": "INVALID"},
        f"4 validation errors detected: {OLD_CAPACITY}; {OLD_SHORT_NAME}; {OLD_RETURN_VALUES}; "
        f"{OLD_NO_KEY}",
    ),
    "an unknown conditional operator and no key": (
        {"TableName": "no_such_table", "ConditionalOperator": "XOR", "Expected": TWO_EXPECTED},
        f"2 validation errors detected: {OLD_OPERATOR}; {OLD_NO_KEY}",
    ),
    "an unknown conditional operator": (
        {
            "TableName": "no_such_table",
            "Key": KEY,
            "ConditionalOperator": "XOR",
            "Expected": TWO_EXPECTED,
        },
        "1 validation error detected: Failed to satisfy constraint: "
        "Member must satisfy enum value set: [ALL, OR]",
    ),
    "an unknown conditional operator and a deep value": (
        {
            "TableName": "no_such_table",
            "Key": KEY,
            "ConditionalOperator": "XOR",
            "Expected": {**TWO_EXPECTED, "b": {"Value": nested(100)}},
        },
        f"1 validation error detected: {OLD_OPERATOR}",
    ),
}


@pytest.mark.parametrize("case", MEMBER_ERRORS)
def test_members_that_break_their_constraints_are_named(client: Any, case: str) -> None:
    request, text = MEMBER_ERRORS[case]
    assert refusal(client.update_item, **request) == (VALIDATION, text)


def test_a_bad_table_name_comes_before_an_empty_key(client: Any) -> None:
    code, text = refusal(client.update_item, TableName="x!", Key={})
    assert code == VALIDATION
    assert "tableName" in text


def test_an_update_in_a_missing_table_finds_no_resource(client: Any) -> None:
    assert refusal(client.update_item, TableName="no_such_table", Key=KEY) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


# --- keys ---

WHOLE_KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
KEY_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "no sort key": ({"pk": {"S": "a"}}, MISMATCH),
    "an attribute too many": ({**WHOLE_KEY, "a": {"S": "x"}}, MISMATCH),
    "a number for a string": ({**WHOLE_KEY, "sk": {"N": "1"}}, MISMATCH),
    "a list for a string": ({**WHOLE_KEY, "pk": {"L": []}}, MISMATCH),
    "an empty partition key": (
        {**WHOLE_KEY, "pk": {"S": ""}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
    ),
    "a long partition key": (
        {**WHOLE_KEY, "pk": {"S": "a" * 2049}},
        INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
    "a long sort key": (
        {**WHOLE_KEY, "sk": {"S": "a" * 1025}},
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
}


@pytest.mark.parametrize("case", KEY_ERRORS)
def test_the_key_must_fit_the_schema(client: Any, indexed: str, case: str) -> None:
    key, text = KEY_ERRORS[case]
    assert refusal(client.update_item, TableName=indexed, Key=key) == (VALIDATION, text)


def test_a_binary_key_cannot_be_empty(client: Any, table: Any) -> None:
    # recorded
    assert refusal(client.update_item, TableName=table(pk="B"), Key={"pk": {"B": b""}}) == (
        VALIDATION,
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty binary value. Key: pk",
    )


IN_KEY = "Cannot update attribute {}. This attribute is part of the key"
SCALAR = (
    "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed"
)
TYPED = "Type mismatch for Index Key lsi1sk Expected: S Actual: {} IndexName: gsi1"
EMPTY_INDEX_KEY = (
    "One or more parameter values are not valid. The update expression attempted to update a "
    "secondary index key to a value that is not supported. The AttributeValue for a key attribute "
    "cannot contain an empty {} value."
)
KEY_CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    # recorded
    "the partition key": ("SET pk = :v", {"S": "x"}, INVALID + IN_KEY.format("pk")),
    "the sort key": ("SET sk = :v", {"S": "x"}, INVALID + IN_KEY.format("sk")),
    "an index key of another type": ("SET lsi1sk = :v", {"N": "1"}, INVALID + TYPED.format("N")),
    "an index key of no scalar type": (
        "SET lsi1sk = :v",
        {"L": []},
        INVALID + TYPED.format("L"),
    ),
    "an empty index key": ("SET lsi1sk = :v", {"S": ""}, EMPTY_INDEX_KEY.format("string")),
    "an empty binary index key": ("SET bidx = :v", {"B": b""}, EMPTY_INDEX_KEY.format("binary")),
    # dynalite
    "the key removed": ("REMOVE pk", {}, INVALID + IN_KEY.format("pk")),
    "the key added to": ("ADD sk :v", {"N": "1"}, INVALID + IN_KEY.format("sk")),
    "a number added to an index key": ("ADD lsi1sk :v", {"N": "1"}, INVALID + TYPED.format("N")),
    "a sum in an index key": ("SET lsi1sk = a + :v", {"N": "1"}, INVALID + TYPED.format("N")),
    "an element of an index key": ("SET lsi1sk[1] = :v", {"S": "x"}, f"{SCALAR}: IndexKey: lsi1sk"),
    "a member of an index key": ("ADD lsi1sk.b :v", {"N": "1"}, f"{SCALAR}: IndexKey: lsi1sk"),
    "an element of an index key read": ("SET f = lsi1sk[1]", {}, f"{SCALAR}: IndexKey: lsi1sk"),
    "the key before a path into it": (
        "SET pk = pk.b + pk[1]",
        {},
        INVALID + IN_KEY.format("pk"),
    ),
}


@pytest.mark.parametrize("case", KEY_CHANGES)
def test_an_update_must_leave_keys_as_the_schema_has_them(
    client: Any, indexed: str, case: str
) -> None:
    expression, value, text = KEY_CHANGES[case]
    values = {"ExpressionAttributeValues": {":v": value}} if value else {}
    assert refusal(
        client.update_item,
        TableName=indexed,
        Key=WHOLE_KEY,
        UpdateExpression=expression,
        **values,
    ) == (VALIDATION, text)


def test_an_index_key_cannot_become_an_attribute_of_another_type(client: Any, indexed: str) -> None:
    # dynalite: seen only when the update is applied
    key = {"pk": {"S": "copied"}, "sk": {"S": "1"}}
    client.put_item(TableName=indexed, Item={**key, "n": {"N": "1"}})
    assert refusal(
        client.update_item, TableName=indexed, Key=key, UpdateExpression="SET lsi1sk = n"
    ) == (
        VALIDATION,
        "The update expression attempted to update the secondary index key to unsupported type",
    )


def test_an_index_key_can_be_set_and_removed(client: Any, indexed: str) -> None:
    key = {"pk": {"S": "indexed"}, "sk": {"S": "1"}}
    query = {
        "TableName": indexed,
        "IndexName": "gsi1",
        "KeyConditionExpression": "lsi1sk = :v",
        "ExpressionAttributeValues": {":v": {"S": "there"}},
    }
    values = {":v": {"S": "there"}}
    client.update_item(
        TableName=indexed,
        Key=key,
        UpdateExpression="SET lsi1sk = :v",
        ExpressionAttributeValues=values,
    )
    assert client.query(**query)["Items"] == [{**key, "lsi1sk": {"S": "there"}}]
    client.update_item(TableName=indexed, Key=key, UpdateExpression="REMOVE lsi1sk")
    assert client.query(**query)["Items"] == []


# --- size ---


def test_an_update_that_would_exceed_400_kb_changes_nothing(client: Any, notes: str) -> None:
    # The update writes little: how the bytes it writes are counted differs between regions.
    key = {"pk": {"S": "size"}}
    room = 400 * 1024 - len("pk") - len("size") - len("a") - len("b")
    client.put_item(TableName=notes, Item={**key, "a": {"S": "x" * (room - 10)}})
    request = {"TableName": notes, "Key": key, "UpdateExpression": "SET b = :v"}
    client.update_item(**request, ExpressionAttributeValues={":v": {"S": "y" * 10}})
    assert refusal(
        client.update_item, **request, ExpressionAttributeValues={":v": {"S": "z" * 11}}
    ) == (VALIDATION, "Item size to update has exceeded the maximum allowed size")
    stored = client.get_item(TableName=notes, Key=key, ProjectionExpression="b")["Item"]
    assert stored == {"b": {"S": "y" * 10}}
