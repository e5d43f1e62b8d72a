"""One module for each kind of server: its session, errors, catalog and column types."""
