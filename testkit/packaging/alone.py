"""A package alone: its wheel and those of its dependencies, in an empty virtual environment."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from testkit import ROOT
from testkit.packaging import wheels

IMPORT_ALL = """
import sys
from importlib import import_module
from pathlib import Path

name, environment, *extras = sys.argv[1:]
folder = Path(import_module(name).__file__).parent
assert folder.is_relative_to(environment), folder
count = 0
for path in sorted(folder.rglob("*.py")):
    parts = path.relative_to(folder.parent).with_suffix("").parts
    if parts[-1] == "__main__":
        continue
    try:
        import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        count += 1
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in extras:
            raise
print(count)
"""
"""Imports all modules of a package, except those that need packages of extras."""


class Alone:
    """A virtual environment outside the repository, with one package and its dependencies."""

    def __init__(self, folder: Path, package: str, needs: Sequence[str] = ()) -> None:
        self._folder = folder
        self._environment = folder / "environment"
        built = [wheels.build(folder / "dist", package=one) for one in (*needs, package)]
        self.partita = wheels.installed(self._environment, *built)
        """The path of the command."""
        self.module = next((ROOT / package / "src").iterdir()).name

    def said(self, *arguments: str) -> str:
        """Returns the output of `partita` with these arguments."""
        return self._run(self.partita, *arguments)

    def imported(self, extras: Collection[str] = ()) -> int:
        """Imports all modules and returns their number."""
        python = self._environment / "bin/python"
        names = (self.module, str(self._environment), *extras)
        return int(self._run(python, "-P", "-c", IMPORT_ALL, *names))

    def _run(self, *command: str | Path) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=wheels.outside(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
