"""The HTTP API of the catalogue."""
