"""With PARTITA_WHEEL=compiled, a wheel holds the compiled modules and is tagged for this platform.

Without, it is plain Python and for any platform. `make wheel` builds both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = Path(__file__).with_name("compile")


class WheelHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard" or os.environ.get("PARTITA_WHEEL") != "compiled":
            return
        (package,) = self.build_config.packages
        name = Path(package).name
        subprocess.run([sys.executable, COMPILE, "--require", name], check=True)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][f"{package}/.compiled"] = f"{name}/.compiled"
