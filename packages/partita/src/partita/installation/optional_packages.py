"""Names the command that installs a missing package here, for this Python and this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from partita.errors import PartitaError

CLONE = Path(__file__).resolve().parents[5]
"""The folder of the Makefile, where Partita runs from a clone."""
OWN = ("partita", "partita_services", "partita_migrate", "metric_catalogue", "page_hit_counter")


@contextmanager
def packages_required(requirement: str) -> Iterator[None]:
    """Turns a failed import into an error that says how to install a requirement.

    with packages_required("partita[postgresql]"):
        import psycopg
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in OWN:
            raise
        if isinstance(error, ModuleNotFoundError):
            problem = f"{package} is not installed"
        else:
            problem = f"{package or 'A package'} cannot be used ({str(error).splitlines()[0]})"
        raise PartitaError(f"{problem}; to install it: {install_command(requirement)}") from error


def require_postgresql() -> None:
    """Raises PartitaError unless the packages of `partita[postgresql]` are installed."""
    with packages_required("partita[postgresql]"):
        import psycopg_pool  # noqa: F401


def install_command(requirement: str) -> str:
    """Returns the command that installs a requirement for the running Python."""
    if (CLONE / "Makefile").is_file() and Path(sys.prefix).resolve() == CLONE / ".venv":
        folder = os.path.relpath(CLONE)
        return "make install" if folder == "." else f"make -C {quote(folder)} install"
    from importlib.util import find_spec

    python = quote(sys.executable)
    pip = f"{python} -m pip" if find_spec("pip") else f"pip --python {python}"
    return f"{pip} install {quote(requirement)}"
