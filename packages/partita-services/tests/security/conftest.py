"""One server that requires signatures."""

from testkit.servers.protected_server import *  # noqa: F403
