"""Event source mappings: they call functions with the records of a stream."""
