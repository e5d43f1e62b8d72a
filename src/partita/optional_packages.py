"""Packages that only some commands need, the extras of pyproject.toml: how to install one here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from partita.errors import PartitaError

CLONE = Path(__file__).resolve().parents[2]
"""The folder of the Makefile, where Partita runs from a clone."""


@contextmanager
def packages_required(extra: str) -> Iterator[None]:
    """Turns the failed import of a package into an error that says how to install the extra."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "partita":
            raise
        if isinstance(error, ModuleNotFoundError):
            problem = f"{package} is not installed"
        else:
            problem = f"{package or 'A package'} cannot be used ({str(error).splitlines()[0]})"
        raise PartitaError(f"{problem}; to install it: {install_command(extra)}") from error


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra for the Python that runs this."""
    if (CLONE / "Makefile").is_file() and Path(sys.prefix).resolve() == CLONE / ".venv":
        folder = os.path.relpath(CLONE)
        return "make install" if folder == "." else f"make -C {quote(folder)} install"
    from importlib.util import find_spec

    python = quote(sys.executable)
    pip = f"{python} -m pip" if find_spec("pip") else f"pip --python {python}"
    return f"{pip} install 'partita[{extra}]'"
