"""Recovery: backups, and what a table was at any moment, out of the archive."""
