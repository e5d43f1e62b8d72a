"""The progress that a load and a verification report while they run."""

from __future__ import annotations

import re

import pytest

from partita_migrate.moving.loading.load import load
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import PATTERNS, script

from .conftest import MakeSource


class Said(list[str]):
    def __call__(self, description: str, done: int, total: int) -> None:
        self.append(description)


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_load_says_how_far_the_log_has_moved_on(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, script())
    folder = source.folder(PATTERNS, target)
    said = Said()
    load(folder, target, is_followed=True, progress=said)
    rows = [one for one in said if one.startswith("Rows")]
    items = [one for one in said if one.startswith("Items")]
    assert rows and items
    assert all(re.fullmatch(r"\w+, \d+ s behind, [\d,]+ bytes", one) for one in rows + items)

    said.clear()
    verify(folder, target, progress=said)
    assert [one for one in said if re.fullmatch(r"Rows, \d+ s behind, [\d,]+ bytes", one)]


def test_where_nothing_is_followed_it_says_so(make_source: MakeSource, target: str) -> None:
    source = make_source("sqlite", script())
    folder = source.folder(PATTERNS, target)
    said = Said()
    load(folder, target, is_followed=False, progress=said)
    assert "Rows, changes are not followed" in said
