"""The shell around the pages: keyboard, width, colors, accessibility, and a server that stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.browser.accessibility import audit, serious_findings
from testkit.browser.chromium import Browser
from testkit.browser.console import FIRST_VIEW_BYTES_MAX
from testkit.browser.person import CONTROL, Person, wait_for
from testkit.servers.processes import Server

WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] :
[...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll"))
  .map((one) => one.outerHTML.slice(0, 100))"""
"""Finds the elements that make a page wider than the window."""
READY = {
    "tables": "Point-in-time recovery",
    "explore": "20 items",
    "partiql": "Statement",
    "build": "Run PutItem",
    "model": "Nothing is modeled yet",
    "heat": "Slow and expensive requests",
    "streams": "Streams",
    "workflows": "Workflows",
    "time": "Table",
    "move": "No migration is shown here",
}
"""A text of each page, which it shows when it is loaded."""


@pytest.fixture
def filled(client: Any, table: Callable[..., str]) -> Iterator[str]:
    name = table("pk", "sk")
    for n in range(20):
        item = {"pk": {"S": f"person-{n % 4}"}, "sk": {"S": str(n)}, "n": {"N": str(n)}}
        client.put_item(TableName=name, Item=item)
    yield name
    client.delete_table(TableName=name)


def test_the_first_view_is_small_and_comes_from_here_alone(person: Person) -> None:
    person.open()
    person.sees("Create table")
    script = """performance.getEntriesByType("resource")
        .concat(performance.getEntriesByType("navigation"))
        .map((e) => [e.name, e.decodedBodySize])"""
    sizes = dict(person.browser.evaluate(script))
    assert any(name.endswith("app.js") for name in sizes)
    assert 0 < sum(sizes.values()) < FIRST_VIEW_BYTES_MAX


def test_everything_is_reached_by_keyboard(person: Person, client: Any, filled: str) -> None:
    person.open()
    person.sees(filled)
    person.presses("k", modifiers=CONTROL)
    wait_for(lambda: person.focus() == "Command", "the palette")
    person.types(filled)
    person.sees("explore", "#choices")
    person.presses("Enter")
    person.sees("20 items")

    def tabs_to(name: str) -> None:
        for _ in range(60):
            if person.focus() == name:
                return
            person.presses("Tab")
        raise AssertionError(f"Tab does not lead to {name}")

    tabs_to("person-0")
    person.presses("Enter")
    person.sees("Save")
    tabs_to("Value of n")
    before = person.browser.evaluate("document.activeElement.value")
    person.browser.evaluate("document.activeElement.select()")
    person.types("77")
    tabs_to("Save")
    person.presses("Enter")
    person.sees("Item saved.")
    numbers = {item["n"]["N"] for item in client.scan(TableName=filled)["Items"]}
    assert "77" in numbers and before not in numbers
    wait_for(lambda: person.focus() == "person-0", "focus is back where it was")
    person.presses("/")
    wait_for(lambda: person.focus() == "Command", "the palette")
    person.types("heat")
    person.presses("Enter")
    person.sees("Requests a second")
    person.presses("k", modifiers=CONTROL)
    wait_for(lambda: person.focus() == "Command", "the palette")
    person.presses("Escape")
    wait_for(lambda: not person.browser.evaluate("!!document.querySelector('.palette')"))


@pytest.mark.parametrize("page", READY)
def test_pages_fit_a_phone_and_have_no_serious_accessibility_findings(
    person: Person, filled: str, page: str, pictures: Path
) -> None:
    place = f"#/{page}/{filled}" if page in ("tables", "explore") else f"#/{page}"
    person.open(place)
    person.sees(READY[page])
    audit(person)
    person.browser.prefer("dark")
    person.photographs(pictures / f"{page}-dark.png")
    person.browser.resize(380, 900)
    assert person.browser.evaluate(WIDE) == []
    person.photographs(pictures / f"{page}-phone.png")
    person.browser.prefer("light")


def test_the_longest_names_and_keys_can_be_read_and_fit_a_phone(
    person: Person, client: Any, table: Callable[..., str]
) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    name = table(TableName="n" * 255, StreamSpecification=view)
    client.put_item(TableName="n" * 255, Item={"pk": {"S": "k" * 2000}})
    client.put_item(
        TableName="n" * 255, Item={"pk": {"S": "k" * 2000}, "a" * 500: {"S": "v" * 500}}
    )
    for place, text in (
        ("#/explore", "n" * 255),
        ("#/tables?filter=nnn", "n" * 255),
        (f"#/explore/{'n' * 255}", "1 item"),
        (f"#/streams/{'n' * 255}", "MODIFY"),
        (f"#/explore/{name}", "It may have been deleted"),
    ):
        person.open(place, width=380)
        person.sees(text)
        assert person.browser.evaluate(WIDE) == [], place
        assert serious_findings(person.browser, place="main") == []
        if text == "1 item":
            shown = "document.querySelector('button.cell').getBoundingClientRect().width"
            assert person.browser.evaluate(shown) > 100
    client.delete_table(TableName="n" * 255)


def test_the_editor_has_no_serious_accessibility_findings(person: Person, filled: str) -> None:
    person.open(f"#/explore/{filled}")
    person.clicks("person-0")
    person.sees("Save")
    audit(person, "[role=dialog]")
    person.open("#/tables?create=1")
    person.sees("Partition key")
    audit(person, "[role=dialog]")


STOPS_MAX = 3000
STOPS = """
[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((one) => !one.disabled && one.tabIndex >= 0
    && one.checkVisibility({ visibilityProperty: true }))
"""
WATCH = """
window.stops = new Map();
addEventListener("focusin", (event) => {
  const style = getComputedStyle(event.target);
  window.stops.set(event.target, style.outlineStyle !== "none" || style.boxShadow !== "none");
});
0
"""


def test_tab_leads_to_everything_on_every_page_and_shows_where_it_is(
    person: Person, filled: str
) -> None:
    person.open()
    person.sees("Create table")
    person.browser.evaluate(WATCH)
    for page, text in READY.items():
        if page in ("tables", "explore"):
            command = f"{filled}: settings" if page == "tables" else filled
        else:
            command = {"build": "Builder", "model": "Modeler"}.get(page, page)
        person.presses("k", modifiers=CONTROL)
        wait_for(lambda: person.focus() == "Command", "the palette")
        person.types(command)
        wait_for(lambda: person.text("#choices"), command)
        person.presses("Enter")
        person.no_longer_sees("explore", "#choices")
        person.sees(text)
        if page == "time":
            wait_for(lambda: person.can("Show history"), "the tables to choose from")
        walks(person)
        missed = f"{STOPS}.filter((one) => !window.stops.has(one)).map((one) => one.outerHTML)"
        assert person.browser.evaluate(missed) == [], page
        hidden = "[...window.stops].filter(([, seen]) => !seen).map(([one]) => one.outerHTML)"
        assert person.browser.evaluate(hidden) == [], page


def walks(person: Person) -> None:
    """Moves through the page with Tab alone: from the current position to the end, and around."""
    person.browser.evaluate("window.stops.clear(); document.activeElement.blur()")
    ends = 0
    for _ in range(2 * STOPS_MAX):
        person.presses("Tab")
        ends += person.browser.evaluate("document.activeElement === document.body")
        if ends == 2:
            return
    raise AssertionError("Tab does not come to an end")


def test_a_live_list_stands_still_under_the_keyboard(
    chromium: Browser, start: Callable[..., Server]
) -> None:
    # Of many tables, the page shows the busiest.
    server = start("serve", "--in-memory", "--port", "0", "--capacity", "observe")
    client, busy, idle = server.client(), "busy", "idle"
    for name in (busy, idle):
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    person = Person(chromium, server.url)
    person.open("#/heat")
    person.sees(idle, "#capacity")
    link = f"#capacity a[href$={idle}]"
    person.browser.evaluate(f"document.querySelector({json.dumps(link)}).focus()")
    before = [row[0] for row in person.cells("#capacity")]

    def is_counted() -> bool:
        client.get_item(TableName=busy, Key={"pk": {"S": "a"}})
        rows = {row[0]: row[1] for row in person.cells("#capacity")}
        return float(rows[busy]) > 5

    wait_for(is_counted, "reads a second")
    assert [row[0] for row in person.cells("#capacity")][: len(before)] == before
    assert person.focus() == idle
    person.browser.evaluate("document.activeElement.blur()")

    def is_first() -> bool:
        is_counted()
        return person.cells("#capacity")[0][0] == busy

    wait_for(is_first, "the busiest table at the top")
    chromium.open("about:blank")


def test_dark_and_light_are_chosen_by_hand_and_kept(person: Person) -> None:
    person.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    before = person.browser.evaluate(ground)
    person.clicks("Switch between dark and light")
    after = person.browser.evaluate(ground)
    assert after != before
    person.open()
    assert person.browser.evaluate(ground) == after
    person.browser.evaluate("localStorage.clear()")


def test_an_edit_survives_a_server_that_is_killed_and_started_again(
    chromium: Browser, tmp_path: Path, pictures: Path, start: Callable[..., Server]
) -> None:
    data = tmp_path / "data"
    server = start("serve", "--data", data, "--port", "0")
    client = server.client()
    client.create_table(
        TableName="items",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName="items", Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    person = Person(chromium, server.url)
    person.open("#/explore/items")
    person.clicks("a")
    person.fills("Value of n", "2")
    server.kill()
    person.clicks("Save")
    person.sees("The server does not answer. Trying again every second")
    person.photographs(pictures / "gone.png")
    again = start("serve", "--data", data, "--port", str(server.port))
    person.sees("Connected again.")
    assert person.value("Value of n") == "2"
    person.clicks("Save")
    person.sees("Item saved.")
    item = again.client().get_item(TableName="items", Key={"pk": {"S": "a"}})["Item"]
    assert item == {"pk": {"S": "a"}, "n": {"N": "2"}}
    wait_for(lambda: person.cells()[0][-1] == "N 2", "the new value in the list")
    chromium.complaints.clear()
