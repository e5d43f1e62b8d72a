"""C code between a server and the system, which fails or records what goes to the disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def compiled(source: Path, folder: Path) -> Path:
    """The library for LD_PRELOAD; a test is skipped where there can be none."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip(f"{source.name} needs Linux and a C compiler (cc)")
    library = folder / f"{source.stem}.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library
