"""A random cut forest and its explanations, behind an interface that hides the library.

The points that it has learned are kept beside it. After a restart a new forest learns them again,
which takes a tenth of a second and does not depend on how the library stores its trees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from partita.errors import PartitaError
from partita.installation.optional_packages import install_command

if TYPE_CHECKING:
    from krcf import RandomCutForest

    from page_hit_counter.spam.detection.features import Point

POINTS_KEPT = 2_048


class Explanation(Struct, frozen=True, kw_only=True):
    """The contribution of one feature to an anomaly, in the form of Kinesis Analytics."""

    feature: str
    attribution: float
    """The feature's share of the score."""
    direction: Literal["high", "low"]
    strength: float
    """How clear the direction is, from 0 to 1."""


class Forest:
    def __init__(
        self, features: Sequence[str], trees: int, samples: int, seed: int, points: Iterable[Point]
    ) -> None:
        self._features = tuple(features)
        self._forest = _grow(len(self._features), trees, samples, seed)
        self.points: deque[Point] = deque(maxlen=POINTS_KEPT)
        for point in points:
            self.learn(point)

    def score(self, point: Point) -> float:
        return float(self._forest.score(point))

    def explain(self, point: Point) -> tuple[Explanation, ...]:
        """Returns what each feature contributes to the score, the largest contribution first."""
        parts = self._forest.attribution(point)
        rows = zip(self._features, parts["high"], parts["low"], strict=True)
        explained = (_explanation(feature, high, low) for feature, high, low in rows)
        return tuple(sorted(explained, key=lambda part: -part.attribution))

    def learn(self, point: Point) -> None:
        self._forest.update(point)
        self.points.append(point)


def _explanation(feature: str, high: float, low: float) -> Explanation:
    total = high + low
    return Explanation(
        feature=feature,
        attribution=round(total, 4),
        direction="high" if high >= low else "low",
        strength=round(abs(high - low) / total, 4) if total else 0.0,
    )


def check_installed() -> None:
    """Raises an error when the library is missing: at the start rather than with the first
    visit."""
    try:
        import krcf  # noqa: F401
    except ModuleNotFoundError as error:
        raise PartitaError(
            "krcf, which the spam filter needs, is not installed: "
            f'{install_command("partita-page-hit-counter")}, or set mode = "off" under [spam].'
        ) from error


def _grow(dimensions: int, trees: int, samples: int, seed: int) -> RandomCutForest:
    from krcf import RandomCutForest

    options: Any = {
        "dimensions": dimensions,
        "shingle_size": 1,
        "num_trees": trees,
        "sample_size": samples,
        "output_after": 1,
        "random_seed": seed,
    }
    return RandomCutForest(options)
