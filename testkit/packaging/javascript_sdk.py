"""The AWS SDK for JavaScript v3, in a folder that is kept between runs.

It is installed with npm. Without npm or its registry, tests that need the SDK are skipped or fail
with a message that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import gettempdir

import pytest

PACKAGES = ("@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb")
INSTALL_SECONDS_MAX = 50
FOLDER = Path(os.environ.get("PARTITA_NODE_MODULES", Path(gettempdir()) / "partita-javascript-sdk"))


def installed() -> Path:
    """Returns the folder in which scripts find the SDK."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("no npm and node here")
    if not all((FOLDER / "node_modules" / package).is_dir() for package in PACKAGES):
        FOLDER.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
        try:
            subprocess.run(
                [*install, *PACKAGES], capture_output=True, timeout=INSTALL_SECONDS_MAX, check=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip("npm could not install the SDK: is its registry reachable?")
    return FOLDER
