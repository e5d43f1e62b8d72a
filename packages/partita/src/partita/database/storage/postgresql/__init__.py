"""PostgreSQL under many servers: what is said to it (docs/adr/0007-postgresql-storage.md)."""
