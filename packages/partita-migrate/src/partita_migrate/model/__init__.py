"""Models: which tables and items there will be, and where each attribute comes from."""
