"""A server with `--auth`, which the tests share."""

from testkit.servers.protected_server import *  # noqa: F403
