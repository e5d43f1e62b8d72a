"""The definition of a table: its schema, the catalog of all tables, throughput and key rules."""
