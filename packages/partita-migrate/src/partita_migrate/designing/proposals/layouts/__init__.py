"""Lays out items in tables: one table for each type of item, or one table for all of them."""
