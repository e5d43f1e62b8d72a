"""The schema of a source: tables, columns, foreign keys, and how they belong together."""
