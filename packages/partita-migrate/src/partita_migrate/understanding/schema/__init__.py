"""The schema of a source: tables, columns, foreign keys, how they belong together, and
collations."""
