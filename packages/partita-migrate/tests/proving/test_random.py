"""Random databases and statements: whatever a design serves gives the same rows as SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita_migrate.proving.prove import test as prove
from testkit.data.moves import designed, sqlite_database

from .chance import Chance

SOAK = range(100, 220)


@pytest.mark.parametrize(
    "seed", [13, 37, *(pytest.param(one, marks=pytest.mark.soak) for one in SOAK)]
)
def test_what_is_served_gives_what_sql_gives(seed: int, tmp_path: Path, endpoint: str) -> None:
    chance = Chance(seed)
    url = sqlite_database(tmp_path / "random.db", chance.script())
    folder = designed(tmp_path / "folder", url, chance.statements())
    for name in ("model.denormalized.toml", "model.single-table.toml"):
        run = prove(folder, name=name, endpoint=endpoint)
        told = [(one.pattern, one.differences) for one in run.functional if one.differences]
        assert (told, run.keys) == ([], [])
        lost = [one.why for one in run.way_back if not one.is_exact]
        assert all(
            why.startswith(("no items of its own", "the design has no items")) for why in lost
        )
