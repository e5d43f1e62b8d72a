"""The schema of a source: tables, columns and foreign keys, how they relate, and how
text compares."""
