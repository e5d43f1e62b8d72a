"""Items that the target refused are remembered until they are written, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import Sql

from .conftest import MakeSource
from .test_life import Application, ready
from .test_move import assert_same

NEW = "INSERT INTO book VALUES (300, 1, 'New', 1)"


@pytest.fixture
def refused(make_source: MakeSource, target: str) -> tuple[Sql, Folder, Application, Any]:
    """Writes a stranger's item where the item of a new row belongs."""
    source, folder, app = ready(make_source, target, "sqlite")
    stranger = app.copy(app.find("book", 3), 3, 300)
    app.put({**app.key(stranger), "whose": {"S": "a stranger's"}})
    source.run(NEW)
    assert follow(folder, target, is_once=True).rejects == 1
    with pytest.raises(PartitaError, match="make no item that the target accepts"):
        cutover(folder, target)
    return source, folder, app, stranger


Refused = tuple[Sql, Folder, Application, Any]


def test_a_later_write_that_succeeds_clears_a_reject(refused: Refused, target: str) -> None:
    source, folder, app, stranger = refused
    source.run("UPDATE book SET price = 2 WHERE id = 300")
    assert follow(folder, target, is_once=True).rejects == 1
    app.delete(stranger)
    source.run("UPDATE book SET price = 3 WHERE id = 300")
    assert follow(folder, target, is_once=True).rejects == 0
    assert not (folder.path / "move" / "rejects.jsonl").exists()
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched


def test_a_repair_clears_a_reject_and_a_stranger_is_left_alone(
    refused: Refused, target: str
) -> None:
    _, folder, app, stranger = refused
    found = verify(folder, target, is_repairing=True)
    assert (found.different, found.repaired, found.rejected) == (1, 0, 1)
    assert "left alone" in found.differences[0].what
    app.delete(stranger)
    found = verify(folder, target, is_repairing=True)
    assert (found.different, found.repaired, found.rejected) == (1, 1, 0)
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched


def test_a_verification_that_finds_the_item_clears_its_reject(
    refused: Refused, target: str
) -> None:
    source, folder, app, stranger = refused
    # The row goes while the stranger's item is there, and then that goes too.
    source.run("DELETE FROM book WHERE id = 300")
    assert follow(folder, target, is_once=True).rejects == 1
    app.delete(stranger)
    assert_same(verify(folder, target))
    assert cutover(folder, target).is_switched


def test_a_replay_writes_what_the_target_refused(refused: Refused, target: str) -> None:
    _, folder, app, stranger = refused
    assert "a stranger" not in str(load(folder, target, is_replaying=True).rejects)
    assert (folder.path / "move" / "rejects.jsonl").exists()
    app.delete(stranger)
    load(folder, target, is_replaying=True)
    assert not (folder.path / "move" / "rejects.jsonl").exists()
    assert app.find("book", 300)["price"] == {"N": "1"}
    assert_same(verify(folder, target))


def test_nothing_is_repaired_while_the_target_is_authoritative(
    make_source: MakeSource, target: str
) -> None:
    _, folder, app = ready(make_source, target, "sqlite")
    cutover(folder, target)
    book = app.find("book", 3)
    app.set(book, "name", {"S": "A copy that the application did not keep"})
    with pytest.raises(PartitaError, match="target has been authoritative"):
        verify(folder, target, is_repairing=True)
    assert app.find("book", 3)["name"] == {"S": "A copy that the application did not keep"}
