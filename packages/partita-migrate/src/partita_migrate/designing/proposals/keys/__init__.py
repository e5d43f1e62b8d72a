"""Chooses what identifies an item, the key of its table, and the indexes beside it."""
