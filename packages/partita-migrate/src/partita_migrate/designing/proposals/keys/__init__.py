"""Keys: what identifies an item, the key of each table, and the indexes beside it."""
