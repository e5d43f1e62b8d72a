"""Tables: what they are (schema, catalog), how items are read, and THE write path."""
