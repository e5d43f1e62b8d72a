"""Relational databases, only ever read: MySQL and MariaDB, PostgreSQL, SQLite.

`connection` opens a session that cannot write and whose statements are short; `reflection`
describes what it holds. What only one kind of server does is in the module of its name.
"""
