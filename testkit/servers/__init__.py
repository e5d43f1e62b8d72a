"""Starts the servers that tests need: Partita, MariaDB, MySQL, PostgreSQL, and a network to cut."""
