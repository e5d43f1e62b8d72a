"""Background jobs: backfilling indexes, deleting expired items (TTL), removing leftover data."""
