"""A private PostgreSQL, and servers that share a database in it."""

from testkit.servers.shared_storage import *  # noqa: F403
