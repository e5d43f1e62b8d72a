"""Tests patterns.toml as people write it, and the messages for mistakes."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import PartitaError
from partita_migrate.understanding.patterns.access_patterns import AccessPattern, Patterns
from partita_migrate.understanding.patterns.call_rates import rate_per_second
from partita_migrate.understanding.patterns.mining.pattern_miner import PatternMiner, RanStatement
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.pattern_files import parse, to_toml

from ...schemas import foreign_key, inventory, table
from ...shop import shop
from .mining.test_statements import blocks

SHOP = shop("mariadb")


def one(text: str) -> AccessPattern:
    (pattern,) = parse(text, SHOP).patterns
    return pattern


def test_a_pattern_in_few_words() -> None:
    found = one(
        """
        [[pattern]]
        name = "latest orders of a customer"
        table = "Orders"
        by = "customer_id"
        order = "-created_at"
        first = 10
        rate = "120/min"
        """
    )
    assert found == AccessPattern(
        name="latest orders of a customer",
        category="range of items",
        operation="read",
        table="orders",
        equality=["orders.customer_id"],
        order_by=["orders.created_at"],
        is_descending=True,
        limit=10,
        items=0.0,
        calls_per_second=2.0,
    )


def test_a_pattern_as_sql() -> None:
    found = one(
        """
        [[patterns]]
        name = "orders of a time"
        sql = "SELECT * FROM orders WHERE customer_id = ? AND created_at BETWEEN ? AND ?"
        rate = 500
        items = 3
        consistent = true
        """
    )
    assert found.equality == ["orders.customer_id"]
    assert found.range == ["orders.created_at"]
    assert (found.items, found.is_consistent) == (3, True)


def test_patterns_may_be_tables_under_their_names() -> None:
    found = parse(
        """
        [patterns."add an order"]
        table = "orders"
        per_day = 86400
        [patterns."see a customer"]
        table = "customer"
        where = ["email"]
        rate = 1
        """,
        SHOP,
    ).patterns
    assert [(one.name, one.operation, one.category, one.items) for one in found] == [
        ("add an order", "insert", "write only", 0),
        ("see a customer", "read", "by distinct value", 1),
    ]
    assert found[0].calls_per_second == 1


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ('table = "order"\nrate = 1', "line 3, pattern 'x': there is no table order; did you mean"),
        ('tabel = "orders"\nrate = 1', "line 3, pattern 'x': 'tabel' is not a member of a pattern"),
        ('table = "orders"\nby = "custmer_id"\nrate = 1',
         "line 4, pattern 'x': orders has no column custmer_id; did you mean customer_id?"),
        ('table = "orders"', "line 1, pattern 'x': it needs a rate"),
        ("rate = 1", "line 1, pattern 'x': it needs a table, or its sql"),
        ('table = "orders"\nrate = "often"', "line 4, pattern 'x': 'often' is not a rate"),
        ('table = "orders"\nrate = -1', "line 4, pattern 'x': -1 is not a rate"),
        ('table = "orders"\nrate = 1\nlimit = 0', "line 5, pattern 'x': its limit must be"),
        ('table = "orders"\nrate = 1\nitems = "3"', "line 5, pattern 'x': '3' is not a number of"),
        ('table = "orders"\nrate = 1\nop = "juggle"', "line 5, pattern 'x': 'juggle' is not an op"),
        ('table = "orders"\nrate = 1\ncategory = "odd"', "pattern 'x': 'odd' is not a category"),
        ('table = "orders"\nrate = 1\nby = [1]', "line 5, pattern 'x': equality must be a text"),
        ('rate = 1\nsql = "SELECT * FROM nowhere"', "line 4, pattern 'x': its sql is not underst"),
        ('rate = 1\nsql = "SET x = 1"', "line 4, pattern 'x': its sql is not understood: settings"),
        ('rate = 1\nsql = "SELEC * FROM orders WHERE id = 1"',
         "its sql is not understood: it does not parse near 'SELEC * FROM'."),
        ('rate = 1\nsql = "orders o"', "it begins with 'orders', and no statement"),
        ('rate = 1\nsql = "SELECT * FORM orders"', "does not parse near '* FORM orders'."),
        ('rate = 1\nsql = "SELECT * FROM orders WHERE id ="', "does not parse near 'WHERE id ='."),
        ('rate = 1\nsql = "SELECT * FROM orders WHERE id = \'x"', "a quote or a bracket may be"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_pattern(members: str, complaint: str) -> None:
    with pytest.raises(PartitaError) as told:
        one(f'[[pattern]]\nname = "x"\n{members}')
    assert complaint in str(told.value)
    assert str(told.value).endswith((".", "?")) and not str(told.value).endswith("?.")


FILMS = inventory(
    table("language", "id, name string", "id"),
    table("actor", "id, name string", "id"),
    table(
        "film",
        "id, spoken, original",
        "id",
        foreign_keys=[foreign_key("spoken", "language.id"), foreign_key("original", "language.id")],
    ),
    *(
        table(
            name,
            "film, actor",
            "film actor",
            foreign_keys=[foreign_key("film", "film.id"), foreign_key("actor", "actor.id")],
        )
        for name in ("acts", "directs")
    ),
)


@pytest.mark.parametrize(
    ("members", "ways", "through"),
    [
        ('by = "language.name"', '"film.spoken" and "film.original"', "film.original"),
        ('by = "actor.name"', '"acts" and "directs"', "directs"),
        ('by = "id"\njoins = "language"', '"film.spoken" and "film.original"', "film.spoken"),
    ],
)
def test_one_of_several_ways_has_to_be_named(members: str, ways: str, through: str) -> None:
    written = f'[[pattern]]\nname = "x"\ntable = "film"\nrate = 1\n{members}\n'
    with pytest.raises(PartitaError) as told:
        parse(written, FILMS)
    assert f"({ways}); name one in through." in str(told.value)
    (found,) = parse(f'{written}through = "{through}"\n', FILMS).patterns
    assert found.through == [through]


def test_all_below_a_row_of_a_tree() -> None:
    keys = [foreign_key("boss", "staff.id")]
    found = inventory(table("staff", "id, boss, name string", "id", foreign_keys=keys))
    written = '[[pattern]]\nname = "team"\ntable = "staff"\nby = "id"\nrate = 1\n'
    (team,) = parse(f'{written}below = "boss"\n', found).patterns
    assert (team.hierarchy, team.equality) == ("staff.boss", ["staff.id"])
    assert parse(tomli_w.dumps(to_toml(Patterns(patterns=[team]))), found).patterns == [team]
    with pytest.raises(PartitaError, match=r"line 6, .* staff.name does not refer to staff itself"):
        parse(f'{written}below = "name"\n', found)


def test_toml_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(PartitaError, match=r"is not valid TOML: .*line 2"):
        parse('[[pattern]]\nname = = "x"', SHOP)


def test_two_patterns_may_not_share_a_name() -> None:
    twice = '[[pattern]]\nname = "x"\ntable = "orders"\nrate = 1\n' * 2
    with pytest.raises(PartitaError, match="two patterns with the name 'x'"):
        parse(twice, SHOP)


def test_members_outside_of_a_pattern_are_refused() -> None:
    with pytest.raises(PartitaError, match=r"'table' outside of a pattern"):
        parse('table = "orders"', SHOP)


def test_what_was_mined_reads_back_as_it_was() -> None:
    mine = PatternMiner(SchemaLookup(SHOP))
    for dialect, statement, _ in blocks():
        if dialect == "mysql":
            mine.add(RanStatement(statement, calls=3, rows=7, examined=20))
    mined = mine.patterns(10, "a test")
    assert len(mined.patterns) > 20
    assert parse(tomli_w.dumps(to_toml(mined)), SHOP) == mined


scalars = st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.booleans())
names = st.sampled_from(
    ["name", "table", "by", "range", "order", "limit", "rate", "items", "sql", "op", "joins", "x"]
)
words = st.sampled_from(
    ["orders", "customer", "id", "customer_id", "-id", "get", "5/s", "SELECT 1"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(names, scalars | words | st.lists(words, max_size=3)), max_size=3))
def test_any_file_is_read_or_refused_in_one_sentence(tables: list[dict[str, Any]]) -> None:
    text = tomli_w.dumps({"pattern": tables})
    try:
        parse(text, SHOP)
    except PartitaError as error:
        assert str(error).startswith("patterns.toml")


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("2000/s", 2000.0),
        ("2,000 per second", 2000.0),
        ("120/min", 2.0),
        ("8 million per day", 8e6 / 86_400),
        ("8M/day", 8e6 / 86_400),
        ("1.5k/s", 1500.0),
        ("3600 calls an hour", 1.0),
        ("1e3", 1000.0),
        ("often", None),
        ("5 per fortnight", None),
        (True, None),
        (-1, None),
        (float("nan"), None),
    ],
)
def test_rates_as_people_write_them(written: object, rate: float | None) -> None:
    assert rate_per_second(written) == rate


def test_values_of_a_list_are_counted_and_read_back() -> None:
    mined = PatternMiner(SchemaLookup(SHOP))
    mined.add(RanStatement("SELECT * FROM orders WHERE customer_id IN (1, 2, 3)"))
    patterns = mined.patterns(60, "a test")
    assert patterns.patterns[0].values == 3
    assert parse(tomli_w.dumps(to_toml(patterns)), SHOP).patterns[0].values == 3
    written = "[[pattern]]\nname = 'x'\nrate = 1\n"
    sql = "sql = 'SELECT * FROM orders WHERE customer_id IN (?, ?)'"
    assert one(f"{written}{sql}").values == 2
    assert one(f"{written}table = 'orders'\nby = 'customer_id'\nvalues = 7").values == 7
    assert one(f"{written}table = 'orders'\nby = 'customer_id'").values == 1
