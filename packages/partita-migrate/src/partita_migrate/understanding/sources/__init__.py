"""Relational databases, which are only ever read: MySQL and MariaDB, PostgreSQL, SQLite.

`source_connection` opens a session that cannot write and whose statements are short.
`schema_reflection` describes what the database holds. `dialects` has a module for each kind of
server.
"""
