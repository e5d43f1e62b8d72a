"""The page of a migration: its stages, its commands, and the designs that it opens."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from partita_migrate.costing.estimate_stage import estimate
from partita_migrate.handover.create_stage import create
from partita_migrate.model.model_files import read_design
from partita_migrate.workspace.migration_folder import Folder
from testkit.browser.accessibility import audit
from testkit.browser.chromium import Browser
from testkit.browser.person import Person, signs_in, wait_for
from testkit.data.moves import PATTERNS, designed, script, sqlite_database
from testkit.servers.processes import ENVIRONMENT, SecureServer, Server, run, starting
from testkit.servers.users import ADMINISTRATOR, People, statement

AUTHORS, BOOKS = 10, 40
NAME = "bookshop"
START = """fetch("/console/api/session").then((one) => one.json()).then(({ Token }) =>
  fetch("/console/api/moves/bookshop/start", { method: "POST",
    headers: { "content-type": "application/vnd.partita.console+json", "x-console-token": Token },
    body: '{"Command": "load"}' }))"""
"""A command that the page does not know of."""


def modelled(path: Path) -> Folder:
    """Returns the folder of a move whose source is beside it, with its chosen design."""
    url = sqlite_database(path / "shop.db", script(AUTHORS, BOOKS))
    folder = designed(path / NAME, url, PATTERNS)
    single = folder.path / "model.single-table.toml"
    (folder.path / "model.toml").write_text(single.read_text())
    return folder


class Shop:
    """A source, its folder, and a console that shows it."""

    def __init__(self, path: Path, server: Server) -> None:
        self.file, self.folder = path / "shop.db", modelled(path)
        estimate(self.folder)
        create(self.folder, server.url)
        (self.table,) = (one.name for one in read_design(self.folder).tables)

    def sells(self, statement: str) -> None:
        with sqlite3.connect(self.file) as connection:
            connection.execute(statement)
        connection.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Shop:
    return Shop(tmp_path_factory.mktemp("move"), server)


@pytest.fixture(scope="module")
def cockpit(shop: Shop, server: Server) -> Iterator[Server]:
    with starting() as start:
        yield start(
            *("console", "--port", "0", "--endpoint", server.url, "--move", shop.folder.path)
        )


@pytest.fixture
def mover(chromium: Browser, cockpit: Server) -> Iterator[Person]:
    chromium.open("about:blank")
    chromium.complaints.clear()
    yield Person(chromium, cockpit.url)
    chromium.open("about:blank")
    chromium.complaints.clear()


def held(client: Any, table: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("scan").paginate(TableName=table)
    return [item for page in pages for item in page["Items"] if "partita_deleted" not in item]


def titles(client: Any, table: str) -> set[str]:
    return {item["title"]["S"] for item in held(client, table) if "title" in item}


def ended(person: Person, command: str, outcome: str = "done") -> None:
    wait_for(
        lambda: command in person.text("[aria-label='Last command']"),
        lambda: f"the end of {command} in {person.text('main')}",
    )
    person.sees(outcome, "#outcome")


def test_designs_open_in_the_modeler_with_their_proof_and_price(
    mover: Person, shop: Shop, pictures: Path
) -> None:
    mover.open("#/model")
    mover.clicks(f"Designs of {NAME}")
    mover.sees("model.single-table.toml", "[role=dialog]")
    mover.sees("USD a month", "[role=dialog]")
    mover.clicks("Open model.single-table.toml")
    mover.sees("Proof and price of model.single-table.toml")
    mover.sees("USD a month", "#proof")
    mover.sees(shop.table)
    mover.clicks(f"Access patterns: {len(PATTERNS)} unproven")
    assert {row[0] for row in mover.cells("#proofs")} == set(PATTERNS)
    assert {row[1] for row in mover.cells("#proofs")} == {"unproven"}
    mover.photographs(pictures / "designs.png")
    audit(mover)
    mover.browser.evaluate("localStorage.clear()")


def place(person: Person, name: str) -> tuple[int, int]:
    """Returns where a button is on the page, however far the page is scrolled."""
    found = f"[...document.querySelectorAll('button')].find((one) => one.innerText === '{name}')"
    x, y = person.browser.evaluate(
        f"(({{ x, y }}) => [x, y + scrollY])({found}.getBoundingClientRect())"
    )
    return round(x), round(y)


def test_no_click_is_lost_while_commands_begin_and_end(mover: Person) -> None:
    mover.open("#/move")
    wait_for(lambda: mover.can("Verify"), "the actions")
    stood = place(mover, "Verify")
    mover.clicks("Follow up to now")
    assert not mover.can("Verify"), "the command that was just asked for is not at work yet"
    mover.sees("follow", "[aria-label='Running']")
    assert place(mover, "Verify") == stood
    ended(mover, "follow", "failed")
    assert place(mover, "Verify") == stood


def test_what_is_refused_is_said_until_something_else_is_asked_for(mover: Person) -> None:
    mover.open("#/move")
    wait_for(lambda: mover.can("Verify"), "the actions")
    # Somebody else is quicker, and this page does not know of it yet.
    mover.browser.evaluate(
        f"{START.replace('load', 'verify')}.then(() => [...document.querySelectorAll('button')]"
        ".find((one) => one.innerText === 'Load').click())"
    )
    mover.sees("bookshop is running a command: wait for it or stop it.", "[role=alert]")
    ended(mover, "verify", "failed")
    mover.sees("bookshop is running a command: wait for it or stop it.", "[role=alert]")


@pytest.mark.soak
def test_a_move_is_loaded_followed_verified_and_repaired_from_the_page(
    mover: Person, shop: Shop, client: Any, pictures: Path
) -> None:
    mover.open("#/move")
    mover.sees("Nothing is moved yet", "#phase")
    mover.clicks("Load")
    ended(mover, "load")
    rows = {row[0]: row[2:] for row in mover.cells("#moved")}
    assert rows["author"][0] == str(AUTHORS) and rows["book"][0] == str(BOOKS)
    assert titles(client, shop.table) >= {f"Title {n}" for n in range(BOOKS)}
    mover.sees("The source is authoritative", "#phase")

    shop.sells("UPDATE book SET title = 'Another' WHERE id = 7")
    mover.clicks("Follow up to now")
    ended(mover, "follow")
    mover.sees(" s", "#lag")
    assert "Another" in titles(client, shop.table)
    mover.clicks("Verify")
    ended(mover, "verify")
    mover.sees("nothing differs", "#compared")

    (item,) = (one for one in held(client, shop.table) if one.get("title") == {"S": "Title 9"})
    client.put_item(TableName=shop.table, Item={**item, "title": {"S": "<b>Forged</b>"}})
    mover.clicks("Verify")
    ended(mover, "verify", "differences found")
    mover.sees("difference", "#compared")
    wait_for(lambda: mover.cells("#different"), "the differences")
    mover.photographs(pictures / "move.png")
    audit(mover)

    mover.clicks("Repair differences…")
    assert not mover.can("Repair differences")
    mover.clicks("Rehearse")
    wait_for(lambda: "could" in mover.text("[role=dialog] [role=status]"), "the rehearsal")
    assert "<b>Forged</b>" in titles(client, shop.table)


@pytest.mark.soak
def test_following_goes_on_until_it_is_stopped(mover: Person, shop: Shop, client: Any) -> None:
    mover.open("#/move")
    mover.clicks("Follow")
    mover.sees("running", ".stages")
    shop.sells("UPDATE book SET title = 'Live' WHERE id = 8")
    wait_for(lambda: "Live" in titles(client, shop.table), "the change")
    assert not mover.can("Load")
    mover.sees("behind", "[aria-label='Running']")
    mover.clicks("Stop")
    mover.sees("follow", "[aria-label='Last command']")
    shop.sells("UPDATE book SET title = 'After' WHERE id = 8")
    mover.clicks("Follow up to now")
    wait_for(lambda: "After" in titles(client, shop.table), "the change after it was stopped")


def test_a_server_that_was_given_no_move_says_how_to_give_one(person: Person) -> None:
    person.open("#/move")
    person.sees("No migration is shown here")
    person.sees("partita serve --move FOLDER")
    person.sees(f"partita console --endpoint {person.url} --move FOLDER")


@pytest.mark.soak
def test_a_cutover_is_rehearsed_named_and_turned_back(
    mover: Person, shop: Shop, client: Any, pictures: Path
) -> None:
    # Undo what an earlier test has forged.
    shop.sells("UPDATE book SET title = 'Right' WHERE id IN (9, 10)")
    mover.open("#/move")
    mover.clicks("Follow up to now")
    ended(mover, "follow")
    mover.clicks("Verify")
    ended(mover, "verify")
    for title, name, phase in (
        ("Cut over", "cutover", "The target is authoritative"),
        ("Roll back", "rollback", "The source is authoritative"),
    ):
        mover.clicks(f"{title}…")
        assert not mover.can(title)
        mover.clicks("Rehearse")
        mover.sees("This would succeed.", "[role=dialog]")
        mover.fills(f"Type {NAME} to confirm", "another")
        assert not mover.can(title)
        mover.fills(f"Type {NAME} to confirm", NAME)
        mover.photographs(pictures / f"{name}.png")
        mover.clicks(title)
        ended(mover, name)
        mover.sees(phase, "#phase")


@pytest.mark.soak
def test_a_move_of_the_settings_is_steered_over_tls_by_whoever_signed_in(
    chromium: Browser, tmp_path: Path
) -> None:
    folder, data, config = modelled(tmp_path), tmp_path / "data", tmp_path / "partita.toml"
    people = People(data)
    config.write_text(
        f'[serve]\ndata = "{data}"\nport = 0\nauth = true\ntls_self_signed = true\n'
        f'move = ["{folder.path}"]\n'
    )
    reader = people.add(statement(["dynamodb:*"]), statement("partita:GetMoves"))
    mover = people.add(policies=[ADMINISTRATOR])
    server = SecureServer("serve", "--config", config)
    certificate = str(data / "tls" / "certificate.pem")
    try:
        url = f"https://localhost:{server.port}"
        keys = {"AWS_ACCESS_KEY_ID": mover.id, "AWS_SECRET_ACCESS_KEY": mover.secret}
        trust = {"AWS_CA_BUNDLE": certificate, "SSL_CERT_FILE": certificate}
        created = run(
            *("migrate", "create", "--endpoint", url, folder.path),
            env={**ENVIRONMENT, **keys, **trust},
        )
        assert created.returncode == 0, created.stderr
        chromium.call("Security.setIgnoreCertificateErrors", ignore=True)
        person = Person(chromium, url)
        person.open("#/move")
        signs_in(person, reader)
        person.sees("Nothing is moved yet", "#phase")
        person.clicks("Load")
        person.sees("not authorized to perform: partita:SteerMoves", "[role=alert]")
        person.clicks("Sign out")
        signs_in(person, mover)
        person.open("#/move")
        person.sees("Nothing is moved yet", "#phase")
        for title, name in (("Load", "load"), ("Follow up to now", "follow"), ("Verify", "verify")):
            person.clicks(title)
            ended(person, name)
        person.sees("nothing differs", "#compared")
        (table,) = (one.name for one in read_design(folder).tables)
        signer = boto3.Session(mover.id, mover.secret, region_name="us-east-1")
        client = signer.client("dynamodb", endpoint_url=url, verify=certificate)
        assert titles(client, table) >= {"Title 0", "Title 1"}
    finally:
        chromium.open("about:blank")
        chromium.call("Network.clearBrowserCookies")
        chromium.call("Security.setIgnoreCertificateErrors", ignore=False)
        chromium.complaints.clear()
        server.terminate()


def test_a_console_that_only_reads_moves_nothing(
    chromium: Browser, shop: Shop, server: Server, start: Callable[..., Server]
) -> None:
    reading = start(
        *("console", "--port", "0", "--endpoint", server.url),
        *("--move", shop.folder.path, "--read-only"),
    )
    person = Person(chromium, reading.url)
    person.open("#/move")
    person.sees("Loaded", ".stages")
    assert not person.browser.evaluate("!!document.querySelector('[aria-label=Actions]')")
    answer = person.browser.evaluate(f"{START}.then((one) => one.json())")
    assert answer["__type"] == "ReadOnlyConsole"
