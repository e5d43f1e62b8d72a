"""Detects spam by rules for single visits, and by a random cut forest for each brand."""
