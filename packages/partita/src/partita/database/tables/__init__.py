"""Tables: their definition (schema, catalog), how items are read, and THE write path."""
