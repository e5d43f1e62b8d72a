"""The wheel of this package works alone, with the wheels that it depends on and nothing else."""

from __future__ import annotations

import pytest

from testkit.packaging.alone import Alone


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(
        tmp_path_factory.mktemp("alone"), "packages/partita-services", ("packages/partita",)
    )


def test_its_commands_have_their_help(alone: Alone) -> None:
    listed = alone.said("--help")
    assert "(not installed)" not in next(
        line for line in listed.splitlines() if "  workflow " in line
    )
    assert alone.said("workflow", "--help").startswith("Usage: partita workflow ")


def test_every_module_can_be_imported(alone: Alone) -> None:
    assert alone.imported() > 100
