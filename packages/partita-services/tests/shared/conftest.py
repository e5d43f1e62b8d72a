"""A private PostgreSQL, and servers that share a database in it."""

from testkit.shared_storage import *  # noqa: F403
