"""A server whose clock moves only on request: `python -m partita.testing.clocked_server`.

It prints its URL. For each line of its input it advances its clock by that many seconds and prints
"moved". So a test of hours of the database's time takes only as long as its requests.
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
        _print(url)
        for line in sys.stdin:
            served.clock.advance(seconds=float(line))
            _print("moved")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
