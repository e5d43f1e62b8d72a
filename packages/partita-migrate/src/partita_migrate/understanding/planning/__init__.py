"""The migration plan: suitability of each table, difficulties, server readiness, recovery."""
