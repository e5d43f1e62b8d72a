"""Data at rest: the invariants that `partita check` verifies, and `partita keys encrypt`."""
