"""The packages that only workflows need, and what is said where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partita.errors import PartitaError

PACKAGES = ("jsonata", "jsonpath")


@contextmanager
def explained() -> Iterator[None]:
    """A missing package is told in one sentence."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise PartitaError(
            f"{error.name} is not installed; pip install 'partita[workflows]' has it."
        ) from error
