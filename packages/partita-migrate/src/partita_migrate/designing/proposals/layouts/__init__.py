"""How items are laid out in tables: a table for each type of item, or one table for all."""
