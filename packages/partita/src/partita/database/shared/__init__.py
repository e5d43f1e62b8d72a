"""A database that several servers share, over PostgreSQL: requests are run in rounds."""
