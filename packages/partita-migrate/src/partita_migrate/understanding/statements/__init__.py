"""SQL statements, parsed and resolved exactly: their tests, joins, order, limit and changes."""
