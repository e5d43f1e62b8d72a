"""The arithmetic of `partita partitions`."""

from __future__ import annotations

import pytest

from partita.errors import PartitaError
from partita.server.monitoring.partitions_command import sizing


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), 1e308])
def test_figures_that_are_none_are_refused_in_a_sentence(figure: float) -> None:
    with pytest.raises(PartitaError, match="finite numbers"):
        list(sizing(1000, 500, figure))
