"""A schema that changes while rows are read ends a load with a sentence, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import PATTERNS, script

from .conftest import KINDS, MakeSource
from .test_move import assert_same, items_of, moved

SERVERS = ("mysql", "postgresql")


def once(run: Callable[[], None]) -> Callable[[str, int, int], None]:
    """A progress that does something after the first rows."""
    is_done = False

    def progress(description: str, done: int, total: int) -> None:
        nonlocal is_done
        if not is_done and done:
            is_done = True
            run()

    return progress


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("is_followed", [True, False])
def test_a_column_that_comes_in_the_middle_of_a_load_ends_it(
    make_source: MakeSource, target: str, kind: str, is_followed: bool
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    alter = once(lambda: source.run("ALTER TABLE book ADD COLUMN extra INT"))
    with pytest.raises(PartitaError, match="book: column extra is new"):
        load(folder, target, is_followed=is_followed, progress=alter)
    assert not items_of(folder, target)
    with pytest.raises(PartitaError, match="book: column extra is new"):
        load(folder, target, is_followed=is_followed)

    source.run("ALTER TABLE book DROP COLUMN extra")
    loaded = load(folder, target, is_followed=is_followed)
    assert [(one.table, one.imported) for one in loaded.tables] == [("author", 10), ("book", 40)]
    assert_same(verify(folder, target))


@pytest.mark.parametrize("kind", SERVERS)
def test_a_column_that_goes_in_the_middle_of_a_load_ends_it(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    alter = once(lambda: source.run("ALTER TABLE book DROP COLUMN price"))
    with pytest.raises(PartitaError, match="book: column price is gone"):
        load(folder, target, is_followed=True, progress=alter)
    assert not items_of(folder, target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_comes_behind_the_verification_ends_a_cutover(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = moved(source, target)
    assert_same(verify(folder, target))
    source.run("ALTER TABLE book ADD COLUMN extra INT DEFAULT 5")
    with pytest.raises(PartitaError, match="book: column extra is new"):
        cutover(folder, target)
    source.run("UPDATE book SET title = 'free' WHERE id = 1")


def test_a_table_that_takes_its_triggers_along_is_no_longer_followed_and_that_is_said(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", script())
    folder = moved(source, target)
    assert_same(verify(folder, target))
    source.run("DROP TABLE book; CREATE TABLE book (id INT PRIMARY KEY, author_id INT NOT NULL,"
               " title VARCHAR(200), price DECIMAL(10, 2))")  # fmt: skip
    for stage in (verify, cutover):
        with pytest.raises(PartitaError, match="no longer logs changes of book"):
            stage(folder, target)


@pytest.mark.parametrize("kind", SERVERS)
def test_another_type_before_a_load_is_noticed(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    source.run(
        "ALTER TABLE book MODIFY COLUMN price BIGINT"
        if kind == "mysql"
        else "ALTER TABLE book ALTER COLUMN price TYPE BIGINT"
    )
    with pytest.raises(PartitaError, match=r"book: price is \w+.* and was"):
        load(folder, target, is_followed=True)
