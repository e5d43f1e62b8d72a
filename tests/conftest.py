"""For all tests: property tests may take their time, and processes start fast."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# How long examples take and how large they become is chance, and no reason to fail.
settings.register_profile("patient", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patient")

# Tests start hundreds of processes: what they import is translated once, not in each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
