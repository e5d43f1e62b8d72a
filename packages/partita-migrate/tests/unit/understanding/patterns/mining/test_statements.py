"""Tests statements with their expected patterns, and generated statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partita_migrate.understanding.patterns.mining.mined_statements import read_statement
from partita_migrate.understanding.patterns.mining.name_scopes import NotAnAccess, NotUnderstood
from partita_migrate.understanding.patterns.mining.normalized_statements import shapes_of
from partita_migrate.understanding.patterns.mining.pattern_miner import (
    PatternMiner,
    RanStatement,
    name_of,
)
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup

from ....schemas import foreign_key, inventory, table
from ....shop import shop

FIXTURE = Path(__file__).parent / "fixtures" / "statements.txt"
SCHEMAS = {"mysql": SchemaLookup(shop("mariadb")), "postgres": SchemaLookup(shop("postgresql"))}


def blocks() -> list[tuple[str, str, list[str]]]:
    _, *found = FIXTURE.read_text().split("\n\n")
    split = [block.strip().splitlines() for block in found]
    return [(dialect, statement, expected) for dialect, statement, *expected in split]


def told(statement: str, schema: SchemaLookup) -> list[str]:
    lines = []
    for shape in shapes_of(statement, schema.dialect):
        try:
            lines += [f"-> {name_of(access)}" for access in read_statement(shape, schema)]
        except NotAnAccess as kind:
            lines.append(f"~> {kind}")
        except NotUnderstood as reason:
            lines.append(f"?> {reason}")
    return lines


@pytest.mark.parametrize(("dialect", "statement", "expected"), blocks())
def test_a_statement_is_the_pattern_that_the_fixture_says(
    dialect: str, statement: str, expected: list[str]
) -> None:
    found = told(statement, SCHEMAS[dialect])
    if expected == ["?> it does not parse"]:
        assert found[0].startswith(expected[0])
    else:
        assert found == expected


def test_one_shape_with_other_values_is_one_pattern() -> None:
    mine = PatternMiner(SCHEMAS["mysql"])
    for number in range(100):
        mine.add(
            RanStatement(
                f"SELECT * FROM orders WHERE customer_id = {number} AND status = 'x{number}'"
            )
        )
        mine.add(
            RanStatement("select *\nfrom   orders where status='y' and customer_id=-1 -- again")
        )
    patterns = mine.patterns(100, "a test").patterns
    assert [pattern.name for pattern in patterns] == ["orders by customer_id and status"]
    assert patterns[0].calls_per_second == 2


def test_rows_that_the_server_counted_are_items_per_call() -> None:
    mine = PatternMiner(SCHEMAS["mysql"])
    mine.add(RanStatement("SELECT * FROM orders WHERE customer_id = ?", calls=10, rows=35))
    mine.add(RanStatement("SELECT status FROM orders WHERE customer_id = ?", calls=30, rows=45))
    (pattern,) = mine.patterns(1, "a test").patterns
    assert pattern.items == 2
    assert pattern.columns == []


def test_without_a_count_the_members_of_a_list_are_items() -> None:
    mine = PatternMiner(SCHEMAS["mysql"])
    mine.add(RanStatement("SELECT * FROM orders WHERE id IN (1, 2, 3)"))
    mine.add(RanStatement("INSERT INTO tag (label) VALUES ('a'), ('b')"))
    items = {one.name: one.items for one in mine.patterns(1, "a test").patterns}
    assert items == {"orders by id": 3, "insert into tag": 2}


def test_what_is_not_understood_is_listed_with_its_calls_and_without_its_values() -> None:
    mine = PatternMiner(SCHEMAS["postgres"])
    mine.add(RanStatement("SELECT frobnicate(('secret'", calls=7))
    patterns = mine.patterns(1, "a test")
    (one,) = patterns.unexplained
    assert one.calls == 7
    assert "secret" not in one.statement + one.reason


WORDS = [
    "SELECT", "*", "FROM", "orders", "customer", "o", "AS", "WHERE", "id", "o.id", "customer_id",
    "=", "<", "IN", "(", ")", ",", "1", "'x'", "?", "$1", "...", "AND", "OR", "NOT", "EXISTS",
    "JOIN", "LEFT", "ON", "GROUP", "BY", "ORDER", "LIMIT", "UNION", "INSERT", "INTO", "VALUES",
    "UPDATE", "SET", "DELETE", "WITH", "x", "LIKE", "'a%'", "BETWEEN", "NULL", "IS", "COUNT(*)",
    "CASE", "WHEN", "THEN", "END", "::", "ANY", ";", "--", "/*", "*/", "`", '"', "LATERAL",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text(max_size=60),
    st.sampled_from(sorted(SCHEMAS)),
)
def test_no_text_ends_the_mining(text: str, dialect: str) -> None:
    for line in told(text, SCHEMAS[dialect]):
        assert line[:2] in ("->", "~>", "?>")


predicates = st.sampled_from(
    [
        "{t}customer_id = {v}",
        "{t}status IN ({v}, {v})",
        "{t}created_at > {v}",
        "{v} < {t}created_at",
        "{t}total IS NULL",
        "({t}id = {v})",
        "{t}status LIKE 'a%'",
        "{t}created_at BETWEEN {v} AND {v}",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(predicates, min_size=1, max_size=4, unique=True).flatmap(
        lambda parts: st.tuples(st.permutations(parts), st.permutations(parts))
    ),
    st.sampled_from(["", "orders.", "o."]),
)
def test_neither_the_order_of_conditions_nor_an_alias_makes_another_pattern(
    orders: tuple[list[str], list[str]], prefix: str
) -> None:
    alias = " AS o" if prefix == "o." else ""
    one = " AND ".join(part.format(t="", v="1") for part in orders[0])
    other = " AND ".join(part.format(t=prefix, v="'x'") for part in orders[1])
    schema = SCHEMAS["mysql"]
    assert told(f"SELECT * FROM orders WHERE {one}", schema) == told(
        f"SELECT * FROM orders{alias} WHERE {other}", schema
    )


def test_a_load_of_data_is_listed_and_is_no_pattern() -> None:
    mine = PatternMiner(SCHEMAS["postgres"])
    mine.add(RanStatement("INSERT INTO orders (id) VALUES ($1)", calls=30, rows=30))
    mine.add(RanStatement("INSERT INTO orders (id) SELECT id FROM customer", calls=1, rows=100_000))
    mine.add(RanStatement(f"INSERT INTO orders (id) VALUES {', '.join(['(1)'] * 600)}"))
    found = mine.patterns(10, "a test")
    assert [(one.name, one.items) for one in found.patterns] == [("insert into orders", 1)]
    assert sorted(one.reason.partition(";")[0] for one in found.unexplained) == [
        "it loads 100,000 rows at once",
        "it loads 600 rows at once",
    ]


TREE = "WITH RECURSIVE t AS ({first} UNION ALL SELECT s.* FROM staff s JOIN t ON {step}) {last}"


@pytest.mark.parametrize(
    ("first", "step", "expected"),
    [
        ("SELECT * FROM staff WHERE id = 1", "s.boss_id = t.id",
         "-> staff below one along boss_id by id"),
        ("SELECT * FROM staff WHERE boss_id = 1", "t.id = s.boss_id",
         "-> staff below one along boss_id by id"),
        ("SELECT * FROM staff WHERE id = 1", "s.id = t.boss_id",
         "?> it walks a hierarchy in an unknown way; write the pattern by hand"),
    ],
)  # fmt: skip
def test_a_recursive_query_that_goes_down_a_tree_is_a_pattern(
    first: str, step: str, expected: str
) -> None:
    keys = [foreign_key("boss_id", "staff.id")]
    staff = table("staff", "id, boss_id, name string", "id", foreign_keys=keys)
    for dialect in ("mariadb", "postgresql"):
        schema = SchemaLookup(inventory(staff, dialect=dialect))
        statement = TREE.format(first=first, step=step, last="SELECT * FROM t")
        assert told(statement, schema) == [expected]


def test_a_dump_that_was_loaded_row_by_row_is_no_rate() -> None:
    logs = table("logs", "id, at datetime", "id", row_count=1000)
    visits = table("visits", "id, at datetime", "id", row_count=50)
    mine = PatternMiner(SchemaLookup(inventory(logs, visits)))
    for _ in range(1000):
        mine.add(RanStatement("INSERT INTO logs VALUES (1, '2026-11-16')"))
        mine.add(RanStatement("INSERT INTO visits VALUES (1, '2026-11-16')"))
    found = mine.patterns(300, "a test")
    rates = {one.name: one.calls_per_second for one in found.patterns}
    assert rates["insert into logs"] == 0, "it has the rows that were inserted, and no others"
    assert rates["insert into visits"] > 3, "its rows come and go"
    filled = next(one for one in found.patterns if one.table == "logs")
    assert "1,000 rows were inserted, as many as logs has" in filled.description
    assert "only statements of the last 5 minutes" in found.origin
    assert mine.patterns(30 * 86_400, "a test").patterns[0].calls_per_second > 0


def test_a_few_seconds_are_no_rate() -> None:
    mine = PatternMiner(SCHEMAS["mysql"])
    mine.add(RanStatement("SELECT * FROM orders WHERE id = 1", calls=60))
    found = mine.patterns(2, "a test")
    assert found.patterns[0].calls_per_second == 1
    assert found.window_seconds == 60


def test_which_of_two_references_is_followed_is_kept() -> None:
    references = [foreign_key("spoken", "language.id"), foreign_key("original", "language.id")]
    film = table("film", "id, spoken, original", "id", foreign_keys=references)
    schema = SchemaLookup(inventory(table("language", "id, name string", "id"), film))
    found = told(
        "SELECT f.* FROM film f JOIN language l ON l.id = f.original WHERE l.name = 'x'", schema
    )
    assert found == ["-> film by language.name through film.original"]


def test_which_of_two_tables_leads_to_another_is_kept() -> None:
    keys = [foreign_key("a_id", "a.id"), foreign_key("b_id", "b.id")]
    schema = SchemaLookup(
        inventory(
            table("a", "id, name string", "id"),
            table("b", "id, name string", "id"),
            *(table(name, "a_id, b_id", "a_id b_id", foreign_keys=keys) for name in ("x", "y")),
        )
    )
    mine = PatternMiner(schema)
    for way in ("x", "y"):
        mine.add(
            RanStatement(
                f"SELECT a.* FROM a JOIN {way} w ON w.a_id = a.id JOIN b ON b.id = w.b_id"
                " WHERE b.name = 'z'"
            )
        )
    found = {one.name: one.through for one in mine.patterns(1, "a test").patterns}
    assert found == {"a by b.name through x": ["x"], "a by b.name through y": ["y"]}


def test_the_last_minute_is_told_as_one() -> None:
    assert "of the last minute:" in PatternMiner(SCHEMAS["mysql"]).patterns(61, "a test").origin


def test_names_that_a_digest_spells_in_its_own_way_are_found() -> None:
    """Seen in MariaDB 10.11: unquoted, a table called user is SYSTEM_USER there."""
    schema = SchemaLookup(inventory(table("user", "id, database string", "id")))
    assert told("SELECT `id` FROM SYSTEM_USER WHERE SCHEMA = ?", schema) == ["-> user by database"]
    exactly = SchemaLookup(inventory(table("fields", "id", "id"), table("columns", "id", "id")))
    assert told("SELECT `id` FROM FIELDS WHERE `id` = ?", exactly) == ["-> fields by id"]


def test_a_statement_that_is_hidden_says_which_right_is_missing() -> None:
    (line,) = told("< insufficient privilege >", SCHEMAS["postgres"])
    assert "GRANT pg_read_all_stats" in line


def test_a_join_that_no_foreign_key_goes_is_told() -> None:
    actor = table("actor", "id, name string", "id")
    edits = table("edits", "id, actor_id, page", "id")
    join = "SELECT * FROM edits e JOIN actor a ON a.id = e.actor_id WHERE a.name = ?"
    alike = "SELECT * FROM edits e JOIN actor a ON a.name = e.page WHERE e.id = ?"
    mine = PatternMiner(SchemaLookup(inventory(actor, edits)))
    for statement in (join, join, alike):
        mine.add(RanStatement(statement))
    assert mine.patterns(60, "a test").references == ["edits.actor_id = actor.id"]
    declared = replace(edits, foreign_keys=[foreign_key("actor_id", "actor.id")])
    mine = PatternMiner(SchemaLookup(inventory(actor, declared)))
    mine.add(RanStatement(join))
    assert mine.patterns(60, "a test").references == []
