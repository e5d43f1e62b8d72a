"""The move itself: rows are loaded, changes followed, both sides verified."""
