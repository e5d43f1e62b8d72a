"""Background work: filling new indexes, removing what was deleted, expiring items."""
