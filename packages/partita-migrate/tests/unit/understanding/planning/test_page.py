"""Tests the page of the plan."""

from __future__ import annotations

from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.migration_plan import group, plan_inventory
from partita_migrate.understanding.planning.plan_page import bytes_text, plan_page

from ...schemas import foreign_key, inventory, table

ORDERS = table(
    "or|ders", "id, user date", "id", foreign_keys=[foreign_key("user", "users.id")], row_count=5
)
USERS = table("users", "id, *name* string", "id", row_count=2, is_row_count_exact=True)
ALONE = table("alone", "id", "id")


def test_every_section_is_there() -> None:
    whole = inventory(ORDERS, USERS, ALONE, views=["seen"])
    page = plan_page(whole, plan_inventory(whole, Goals(notes="Before the lease ends.")))
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Goals",
        "## Candidates",
        "## Tables",
        "## Relationships",
        "## Challenges that decide the strategy",
        "## Difficulties",
        "## Backup and recovery",
    ]
    assert "Before the lease ends." in page
    assert "| or\\|ders | about 5 |" in page and "| users | 2 |" in page


def test_the_backup_is_made_with_the_sources_own_tool() -> None:
    for dialect, tool in (
        ("mysql", "mysqldump"),
        ("mariadb", "mariadb-dump"),
        ("postgresql", "pg_dump"),
        ("sqlite", ".backup"),
    ):
        whole = inventory(ALONE, dialect=dialect)
        steps = plan_inventory(whole, Goals()).recovery
        assert tool in (steps[0].command or "")
        assert {"before", "during", "parallel", "cutover", "way back"} == {
            step.phase for step in steps
        }


def test_tables_that_belong_together_move_together() -> None:
    assert group(inventory(ORDERS, USERS, ALONE)) == [["or|ders", "users"], ["alone"]]


def test_bytes() -> None:
    assert [bytes_text(count) for count in (None, 7, 1536, 3 * 2**30)] == [
        "unknown",
        "7 B",
        "1.5 KB",
        "3.0 GB",
    ]
