"""Plans a migration from an inventory: candidates, difficulties, readiness, and the recovery
plan."""
