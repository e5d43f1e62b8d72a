"""PostgreSQL as the storage that several servers share (docs/adr/0007-postgresql-storage.md)."""
