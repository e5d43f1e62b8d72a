"""For all tests: property tests take the time that a busy machine needs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long examples take and how large they become is chance, and no reason to fail.
settings.register_profile("patient", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("patient")
