"""Which side is authoritative, and how that changes: cutover, rollback, finish."""
