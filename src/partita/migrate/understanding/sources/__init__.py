"""Relational databases, only ever read: MySQL and MariaDB, PostgreSQL, SQLite.

`connect` opens a session that cannot write and whose statements are short; `reflect` describes what
it holds. What only one kind of server does is in the module of its name.
"""

from __future__ import annotations

from partita.migrate.understanding.sources.connection import Source, SourceError, connect
from partita.migrate.understanding.sources.reflection import reflect

__all__ = ["Source", "SourceError", "connect", "reflect"]
