"""Packages that only workflows need, and the error when they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partita.errors import PartitaError

PACKAGES = ("jsonata", "jsonpath")


@contextmanager
def packages_required() -> Iterator[None]:
    """Turns the failed import of such a package into an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise PartitaError(
            f"{error.name} is not installed: pip install 'partita[workflows]'."
        ) from error
