"""Tests `partita migrate report` in a real browser, and the rows that it shows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.errors import PartitaError
from partita_migrate.costing.estimate_stage import estimate
from partita_migrate.designing.model_stage import model
from partita_migrate.report.report_page import report
from partita_migrate.understanding.analysis import read_analysis
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.workspace.migration_folder import Folder
from testkit.browser.accessibility import serious_findings
from testkit.browser.chromium import PROGRAMS, Browser, browsing, program
from testkit.servers.database_servers import DatabaseServer

from ..conftest import MakeFolder

SECTIONS = (
    "Summary", "The source and its entities", "Item sizes", "Key skew", "The models",
    "Access patterns", "Tests on the source's own rows", "The designs compared", "The bill",
    "Difficulties and risks", "Backup and recovery", "What is not known",
)  # fmt: skip
EVIL = "<script>alert(1)</script>"
STRAY = """
[...document.querySelectorAll("body *")].filter((element) => {
  if (element.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let outer = element.parentElement; outer; outer = outer.parentElement)
    if (getComputedStyle(outer).overflowX !== "visible") return false;
  return true;
}).map((element) => element.outerHTML.slice(0, 80))
"""
"""Elements that stick out of the page to the right, other than inside of what scrolls."""

PATTERNS = """
[[pattern]]
name = "customer by id"
table = "customers"
by = "id"
rate = "100/s"
[[pattern]]
name = "orders of a customer"
table = "orders"
by = "customer_id"
order_by = "ordered_at"
rate = "20/s"
[[pattern]]
name = "orders by status"
table = "orders"
by = "status"
rate = "5/s"
"""


def shop(path: Path, more_tables: int = 0) -> Folder:
    """All stages over a shop with names that mean harm, and any number of further tables."""
    connection = sqlite3.connect(path / "shop.db")
    connection.executescript(
        f"""
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, note TEXT);
        CREATE TABLE orders (
            id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id),
            ordered_at DATE NOT NULL, status TEXT, total NUMERIC);
        CREATE TABLE "{EVIL}" (id INTEGER PRIMARY KEY, "</td><b>" TEXT,
            customer_id INTEGER REFERENCES customers (id));
        CREATE TABLE {"long_winded_" * 20} (id INTEGER PRIMARY KEY, {"c" * 150} TEXT);
        """
    )
    for n in range(1, 41):
        row = (n, f"Name of {n}", f"person{n}@private.example", "x" * (n * 60))
        connection.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", row)
        connection.execute(f'INSERT INTO "{EVIL}" VALUES (?, ?, ?)', (n, EVIL, n))
        for order in range(n % 7):
            connection.execute(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
                (n * 10 + order, n, f"2026-01-{n % 28 + 1:02}", "open", n * 1.5),
            )
    for n in range(more_tables):
        parent = f"further_{(n * 7) % n}" if n else "customers"
        reference = f"up INTEGER REFERENCES {parent} (id)"
        connection.execute(f"CREATE TABLE further_{n} (id INTEGER PRIMARY KEY, {reference})")
    connection.commit()
    connection.close()
    (path / "migration.toml").write_text('[source]\nurl = "sqlite:///shop.db"\n')
    (path / "patterns.toml").write_text(PATTERNS)
    folder = Folder.open(path)
    for stage in (plan, analyze, model, estimate, report):
        stage(folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is installed; scripts/provision installs one")
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("shop")).path / "report.html"


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.complaints.clear()
    browser.requested.clear()
    browser.open(page)
    return browser


def test_sections_and_nothing_to_complain_about(opened: Browser, page: Path) -> None:
    headings = "[...document.querySelectorAll('main > section > h2')].map(h => h.innerText)"
    assert opened.evaluate(headings) == list(SECTIONS)
    assert opened.evaluate("document.title") == "shop.db to DynamoDB: migration report"
    assert opened.complaints == []
    assert opened.requested == [page.as_uri()]


def test_names_run_nothing(opened: Browser) -> None:
    assert opened.evaluate("document.scripts.length") == 1
    assert EVIL in opened.evaluate("document.body.innerText")
    assert opened.evaluate("document.querySelectorAll('td b').length") == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, page: Path, width: int, scheme: str
) -> None:
    browser.prefer(scheme)
    browser.open(page, width=width)
    try:
        assert browser.evaluate(STRAY) == []
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        # Also what stands in panels that are not shown at first.
        browser.evaluate("document.querySelectorAll('[hidden]').forEach(one => one.hidden = false)")
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.evaluate(STRAY) == []
        color = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (color == "rgb(16, 19, 25)") == (scheme == "dark")
        assert serious_findings(browser) == []
    finally:
        browser.prefer("light")


def test_charts_have_bars(opened: Browser) -> None:
    def sizes(selector: str) -> list[Any]:
        return list(
            opened.evaluate(
                f"[...document.querySelectorAll({json.dumps(selector)})]"
                ".map(bar => bar.getBoundingClientRect()).map(r => [r.width, r.height])"
            )
        )

    histogram = sizes("#sizes .histogram .bar")
    assert len([one for one in histogram if min(one) > 0]) >= 4
    assert all(width > 0 for width, _ in sizes("#skew rect.bar")) and sizes("#skew rect.bar")
    assert len([one for one in sizes("#bill-1 .bars .bar") if min(one) > 0]) > 8


def test_the_diagram_shows_tables_with_lines_between_them(opened: Browser) -> None:
    boxes = opened.evaluate(
        "[...document.querySelectorAll('.entity')].map(g => { const r = g.getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom]; })"
    )
    assert len(boxes) == 4
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    lengths = "[...document.querySelectorAll('.frame .edge')].map(edge => edge.getTotalLength())"
    assert len(opened.evaluate(lengths)) == 2 and min(opened.evaluate(lengths)) > 20
    # No text of a box runs over its edge; what did would be clipped.
    over = opened.evaluate(
        "[...document.querySelectorAll('.entity')].filter(g => {"
        " const edge = g.querySelector('rect').getBoundingClientRect().right + 1;"
        " return [...g.querySelectorAll('text')].some("
        "t => t.getBoundingClientRect().right > edge); }).length"
    )
    assert over == 0
    assert opened.evaluate("getComputedStyle(document.querySelector('.entity svg')).overflow") == (
        "hidden"
    )


def test_tabs_switch(opened: Browser) -> None:
    def shown() -> list[bool]:
        return list(
            opened.evaluate(
                "['model-1', 'model-2'].map(id => document.getElementById(id).offsetHeight > 0)"
            )
        )

    assert shown() == [True, False]
    opened.click("#tab-model-2")
    assert shown() == [False, True]
    assert opened.evaluate("document.querySelector('#tab-model-2').ariaSelected") == "true"
    opened.evaluate("document.querySelector('#tab-model-2').focus()")
    opened.evaluate(
        "document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
    )
    assert shown() == [True, False]
    assert opened.complaints == []


def test_items_of_one_customer_stand_together(opened: Browser) -> None:
    together = opened.evaluate(
        "Math.max(...[...document.querySelectorAll('td.partition')].map(cell => cell.rowSpan))"
    )
    assert together >= 2


def test_a_large_diagram_is_scrolled_or_shown_whole(browser: Browser, tmp_path: Path) -> None:
    folder = shop(tmp_path, more_tables=50)
    browser.complaints.clear()
    browser.open(folder.path / "report.html")
    settled = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    browser.evaluate(settled)
    widths = (
        "(() => { const f = document.querySelector('.frame');"
        " return [f.scrollWidth, f.clientWidth]; })()"
    )
    inside, frame = browser.evaluate(widths)
    assert inside > frame
    browser.click("figure.diagram button")
    inside, frame = browser.evaluate(widths)
    assert inside <= frame
    assert browser.complaints == []


# The rows that are shown.


def test_texts_are_not_kept_unless_asked_for(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    private = "@private.example"
    for file in tmp_path.iterdir():
        assert file.suffix == ".db" or private not in file.read_text(), file.name
    examples = read_analysis(folder).examples
    orders, customers = examples["orders"], examples["customers"]
    assert {one["customer_id"]["N"] for one in orders} <= {one["id"]["N"] for one in customers}
    assert "2026-01-" in (tmp_path / "report.html").read_text()

    settings = tmp_path / "migration.toml"
    settings.write_text(settings.read_text() + '[analyze]\nexamples = "whole"\n')
    folder = Folder.open(tmp_path)
    analyze(folder)
    report(folder)
    assert private in (tmp_path / "report.html").read_text()

    settings.write_text(settings.read_text().replace("whole", "none"))
    folder = Folder.open(tmp_path)
    analyze(folder)
    report(folder)
    assert read_analysis(folder).examples == {}
    assert "no rows were kept as examples" in (tmp_path / "report.html").read_text()
    settings.write_text(settings.read_text().replace("none", "some"))
    with pytest.raises(PartitaError, match="examples"):
        analyze(Folder.open(tmp_path))


def test_a_text_is_masked_wherever_sqlite_keeps_it(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "odd.db")
    connection.executescript(
        """
        CREATE TABLE odd (id INTEGER PRIMARY KEY, age INTEGER, born DATE, data JSON, raw BLOB);
        INSERT INTO odd VALUES (1, 'Secret', 'Secret', '{"a": "Secret"}', x'00');
        INSERT INTO odd VALUES (2, 40, '2001-02-03', '{}', NULL);
        """
    )
    connection.close()
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///odd.db"\n')
    folder = Folder.open(tmp_path)
    plan(folder)
    first, second = analyze(folder).examples["odd"]
    assert "Secret" not in json.dumps(first)
    assert first.keys() == {"id", "age", "born", "data", "raw"}
    assert (second["age"], second["born"]) == ({"N": "40"}, {"S": "2001-02-03"})
    assert "raw" not in second


def test_examples_of_a_server_belong_together(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = server.create(
        "examples",
        """
        CREATE TABLE author (id INT PRIMARY KEY, name VARCHAR(50), born DATE);
        CREATE TABLE book (isbn CHAR(13) PRIMARY KEY, author_id INT NOT NULL, title TEXT,
            FOREIGN KEY (author_id) REFERENCES author (id));
        CREATE INDEX by_author ON book (author_id);
        CREATE TABLE loan (isbn CHAR(13), taken DATE, reader VARCHAR(50), PRIMARY KEY (isbn, taken),
            FOREIGN KEY (isbn) REFERENCES book (isbn));
        INSERT INTO author VALUES (1, 'Ann Secret', '1970-01-01'), (2, 'Bob', NULL);
        INSERT INTO book VALUES ('9780000000001', 1, 'One'), ('9780000000002', 1, 'Two'),
            ('9780000000003', 2, 'Three');
        INSERT INTO loan VALUES ('9780000000001', '2026-01-01', 'Cy'),
            ('9780000000001', '2026-02-01', 'Di'), ('9780000000003', '2026-01-05', 'Cy');
        """,
    )
    folder = make_folder(url)
    plan(folder)
    examples = analyze(folder).examples
    assert {one["taken"]["S"] for one in examples["loan"]} == {
        "2026-01-01",
        "2026-02-01",
        "2026-01-05",
    }
    books = {one["isbn"]["S"] for one in examples["book"]}
    assert {one["isbn"]["S"] for one in examples["loan"]} <= books
    assert all("978" not in isbn for isbn in books)
    authors = {one["id"]["N"]: one for one in examples["author"]}
    assert {one["author_id"]["N"] for one in examples["book"]} <= authors.keys()
    assert "born" not in authors["2"]
    assert "Secret" not in (folder.path / "analysis.json").read_text()
    first = (folder.path / "analysis.json").read_bytes()
    analyze(folder)
    assert (folder.path / "analysis.json").read_bytes() == first
