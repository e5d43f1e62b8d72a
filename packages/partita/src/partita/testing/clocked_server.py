"""A server whose time stands still until it is moved: `python -m partita.testing.clocked_server`.

It says where it listens, then moves its clock by as many seconds as each line of its input says,
and says so. What takes hours of the database's time takes as long as the requests in it.
"""

from __future__ import annotations

import sys

from partita.foundation.clock import system_clock
from partita.testing.listener_thread import in_thread
from partita.testing.private_database import database


def main() -> None:
    (capacity,) = sys.argv[1:] or ("enforce",)
    with database(capacity=capacity) as served, in_thread(served, "127.0.0.1", 0) as url:
        served.clock.set(system_clock())
        _say(url)
        for line in sys.stdin:
            served.clock.advance(seconds=float(line))
            _say("moved")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
