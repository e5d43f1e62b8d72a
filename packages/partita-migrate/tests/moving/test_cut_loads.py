"""A load that is interrupted and continued has read rows at several positions of the log."""

from __future__ import annotations

import pytest

from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading import lane_reader
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import PATTERNS, script

from .conftest import MakeSource
from .test_move import assert_same


def interrupt(description: str, done: int, total: int) -> None:
    """Returns a progress that ends the load after its first rows."""
    if description.startswith("Rows") and done:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE author SET email = 'free' WHERE id = 1;"
        "UPDATE author SET email = 'a1@x' WHERE id = 8",
        "UPDATE author SET id = 100 WHERE id = 1",
        "DELETE FROM author WHERE id = 1; UPDATE author SET email = 'a1@x' WHERE id = 8",
    ],
    ids=["handed over", "another key", "deleted"],
)
def test_a_unique_value_that_wanders_to_a_row_that_is_read_later_keeps_its_item(
    make_source: MakeSource,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    change: str,
) -> None:
    monkeypatch.setattr(lane_reader, "CHUNK_ROWS", 3)
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    with pytest.raises(KeyboardInterrupt):
        load(folder, target, is_followed=True, progress=interrupt)
    for statement in change.split(";"):
        source.run(statement)
    load(folder, target, is_followed=True)
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target, is_dry_run=True))
