"""Tests which tables suit DynamoDB, and the reasons."""

from __future__ import annotations

from partita.foundation.service_limits import GB
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.suitability import Suitability, score
from partita_migrate.understanding.schema.inventory import SourceIndex, SourceTable

from ...schemas import foreign_key, inventory, table, unique


def judged(*tables: SourceTable) -> dict[str, Suitability]:
    return {one.table: one for one in score(inventory(*tables), Goals())}


def test_the_whitepapers_candidates_are_good_ones() -> None:
    found = judged(
        table("user_sessions", "token string, data json", "token"),
        table("user_preferences", "user_id, theme string", "user_id"),
        table("access_log", "id, at datetime, line string", "id"),
        table("extras", "item_id, attribute string, value string", "item_id attribute"),
    )
    assert {one.verdict for one in found.values()} == {"good candidate"}
    assert {name: one.workload for name, one in found.items()} == {
        "user_sessions": "session state",
        "user_preferences": "user preferences",
        "access_log": "log and event data",
        "extras": "entity-attribute-value",
    }


def test_unsuitable_workloads_are_poor_candidates() -> None:
    shops = table("shops", "id, name string, town string, zip string, owner string", "id")
    facts = table(
        "sales_facts",
        "day, shop, item, amount decimal",
        "",
        foreign_keys=[foreign_key("shop", "shops.id")],
    )
    pictures = table("pictures", "id, image binary", "id", row_count=10, data_bytes=10 * 2**20)
    found = judged(shops, facts, pictures)
    assert found["sales_facts"].verdict == found["pictures"].verdict == "poor candidate"
    assert any("analytical" in reason.text for reason in found["sales_facts"].reasons)
    assert any("400 KB" in reason.text for reason in found["pictures"].reasons)


def test_the_score_is_the_sum_of_its_reasons() -> None:
    searched = table(
        "articles",
        "id, slug string, body string",
        "id",
        indexes=[unique("slug"), SourceIndex(name="words", columns=["body"], kind="fulltext")],
        triggers=["stamp"],
        row_count=2_000_000,
        data_bytes=GB,
    )
    one = judged(searched)["articles"]
    assert one.score == 50 + sum(reason.points for reason in one.reasons)
    assert all(reason.text.endswith(".") for reason in one.reasons)


def test_lookup_tables_are_better_copied() -> None:
    statuses = table("statuses", "id, code string", "id", row_count=3)
    tickets = table(
        "tickets",
        "id, status, text string",
        "id",
        foreign_keys=[foreign_key("status", "statuses.id")],
        row_count=5000,
    )
    found = judged(statuses, tickets)
    assert found["statuses"].score < found["tickets"].score
    assert any("copied into the items" in reason.text for reason in found["statuses"].reasons)


def test_the_best_come_first_and_equals_by_name() -> None:
    ordered = [one.table for one in score(inventory(*map(plain, "cba")), Goals())]
    assert ordered == ["a", "b", "c"]


def plain(name: str) -> SourceTable:
    return table(name, "id", "id")


def test_goals_count() -> None:
    large = table("things", "id, x string", "id", row_count=10, data_bytes=GB)
    (with_load,) = score(inventory(large), Goals(aims=["load"]))
    (without,) = score(inventory(large), Goals(aims=["performance"]))
    assert with_load.score == without.score + 10


def test_a_table_with_rows_comes_before_one_without() -> None:
    full, empty = (
        table(f"{name}_sessions", "token string, data json", "token", row_count=rows)
        for name, rows in (("our", 10), ("an", 0))
    )
    found = judged(empty, full)
    assert list(found) == ["our_sessions", "an_sessions"]
    assert found["our_sessions"].score > found["an_sessions"].score
