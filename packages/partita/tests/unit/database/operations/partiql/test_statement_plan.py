"""Plans: which item or which ranges a statement comes down to, given a table's key."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.database.item.key_encoding import KeyAttribute
from partita.database.operations.partiql.language.bindings import read_parameters
from partita.database.operations.partiql.language.statement_compiler import (
    ConditionalStatement,
    SelectStatement,
    compile_statement,
)
from partita.database.operations.partiql.language.statement_plan import (
    ReadPlan,
    SingleItemPlan,
    plan_item,
    plan_read,
)
from partita.database.operations.partiql.language.where_branches import filtered_attributes
from partita.database.tables.definition.table_schema import Table
from partita.errors import ValidationException
from partita.foundation.service_limits import STATEMENT_READS_MAX

TABLE = Table(
    name="Paged",
    number=1,
    table_id="id",
    created_at=0.0,
    attribute_types={"pk": "S", "sk": "N"},
    partition=KeyAttribute("pk", "S"),
    sort=KeyAttribute("sk", "N"),
)


def read(condition: str, *parameters: Any, order: str = "") -> ReadPlan:
    statement = compile_statement(f"SELECT * FROM Paged WHERE {condition} {order}")
    assert isinstance(statement, SelectStatement)
    values = statement.values(read_parameters(parameters))
    return plan_read(statement, TABLE.partition, TABLE.sort, TABLE, values)


def filtered(condition: str) -> list[frozenset[str]]:
    statement = compile_statement(f"SELECT * FROM Paged WHERE {condition}")
    assert isinstance(statement, SelectStatement)
    return filtered_attributes(statement, TABLE.partition, TABLE.sort, TABLE, statement.values(()))


def item(condition: str, *parameters: Any) -> SingleItemPlan | None:
    statement = compile_statement(f"DELETE FROM Paged WHERE {condition}")
    assert isinstance(statement, ConditionalStatement)
    return plan_item(statement, TABLE, statement.values(read_parameters(parameters)))


def shown(plan: ReadPlan) -> list[tuple[Any, ...]]:
    return [
        (one.partition[0]["S"], [v["N"] for v in one.equal], one.comparison, [*one.operands])
        for one in plan.ranges
    ]


@pytest.mark.parametrize(
    ("condition", "ranges", "is_filtered"),
    [
        ("pk = 'a'", [("a", [], None, [])], False),
        ("'a' = pk AND n = 1", [("a", [], None, [])], True),
        ("pk = 'a' AND sk = 1", [("a", ["1"], None, [])], False),
        ("pk = 'a' AND sk > 1", [("a", [], ">", [{"N": "1"}])], False),
        ("pk = 'a' AND 1 > sk", [("a", [], "<", [{"N": "1"}])], False),
        ("pk = 'a' AND sk > 1 AND sk < 3", [("a", [], ">", [{"N": "1"}])], True),
        ("(n = 1 AND sk = 1) AND pk = 'a'", [("a", ["1"], None, [])], True),
        ("pk IN ['b', 'a']", [("a", [], None, []), ("b", [], None, [])], False),
        ("pk = 'a' AND sk IN [1, 2]", [("a", [], None, [])], True),
        ("pk = 'b' OR pk = 'a'", [("a", [], None, []), ("b", [], None, [])], True),
        ("pk = 'b' OR pk IN ['a']", [("a", [], None, []), ("b", [], None, [])], True),
        (
            "(pk = 'a' OR pk = 'b') AND sk = 1",
            [("a", ["1"], None, []), ("b", ["1"], None, [])],
            True,
        ),
        ("pk = 'a' AND sk < 1 OR pk = 'a' AND sk > 2", [("a", [], None, [])], True),
        ("pk = 'a' AND (NOT sk = 1 OR n = 2)", [("a", [], None, [])], True),
        ("pk = 'a' OR (n = 1 AND pk = 'b')", [("a", [], None, []), ("b", [], None, [])], True),
        ("pk = 'a' OR n = 1", [], True),
        ("pk = 'a' OR NOT pk = 'b'", [], True),
        ("pk = 'a' OR pk = ''", [], True),
        ("NOT pk = 'a'", [], True),
        ("pk = n", [], True),
        ("pk > 'a'", [], True),
        ("sk = 1", [], True),
    ],
)
def test_what_a_select_reads(condition: str, ranges: list[Any], is_filtered: bool) -> None:
    plan = read(condition)
    assert (shown(plan), plan.filter is not None) == (ranges, is_filtered)


def test_parameters_are_constants() -> None:
    assert shown(read("pk = ? AND sk = ?", {"S": "a"}, {"N": "1.0"})) == [("a", ["1"], None, [])]


def test_the_order_of_ranges_and_of_what_is_in_them() -> None:
    plan = read("pk IN ['a', 'b']", order="ORDER BY pk DESC, sk DESC")
    assert ([one[0] for one in shown(plan)], plan.is_forward) == (["b", "a"], False)


def test_an_item_is_named_by_equalities_on_its_whole_key() -> None:
    plan = item("pk = 'a' AND sk = 1 AND n = 2")
    assert plan is not None
    assert (plan.key, len(plan.terms)) == ({"pk": {"S": "a"}, "sk": {"N": "1"}}, 1)
    assert item("pk = 'a'") is None
    assert item("pk = 'a' AND sk > 1") is None
    assert item("pk IN ['a'] AND sk = 1") is None


@pytest.mark.parametrize(
    "condition", ["pk = 1", "pk = 'a' AND sk = 'x'", "pk = 'a' AND pk = 'b' AND sk = 1"]
)
def test_keys_that_do_not_fit_are_refused(condition: str) -> None:
    with pytest.raises(ValidationException):
        item(condition)


TERMS = st.sampled_from(
    [
        *("pk = 'a'", "pk = 'b'", "pk IN ['a', 'b']", "pk = 1", "pk = ''", "pk = <<1>>"),
        *("sk = 1", "sk = 2", "sk < 2", "sk >= 2", "sk BETWEEN 1 AND 3", "sk IN [1, 2]"),
        *("sk <> 1", "NOT sk = 2", "sk = [1]", "begins_with(sk, '1')", "n = 1", "sk = n", "3 > sk"),
    ]
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("AND", "OR")), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        inner.map(lambda condition: f"NOT ({condition})"),
    ),
    max_leaves=8,
)


@given(CONDITIONS)
def test_conditions_on_the_key_are_planned_or_refused(condition: str) -> None:
    with suppress(ValidationException):
        assert len(read(condition).ranges) <= STATEMENT_READS_MAX
    with suppress(ValidationException):
        assert len(filtered(condition)) <= STATEMENT_READS_MAX


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("pk = 'a' AND n = 1 AND sk = 1", [{"n"}]),
        ("pk = 'b' AND m = 1 OR pk = 'a' AND NOT n = 1", [{"n"}, {"m"}]),
        ("pk = 'a' AND (n = 1 OR size(m.x) > 2)", [{"n", "m"}]),
        ("pk IN ['b', 'a'] AND sk <> 1", [{"sk"}, {"sk"}]),
        ("pk = 'a' AND (pk = 'b' OR n = 1)", []),
        ("pk = 'a' OR n = 1", []),
    ],
)
def test_on_what_each_branch_filters(condition: str, names: list[set[str]]) -> None:
    assert filtered(condition) == names
