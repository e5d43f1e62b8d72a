"""A server of its own whose time stands still until it is moved: `python -m partita.testing.clocked`.

It says where it listens, then moves its clock by as many seconds as each line of its input says,
and says so. What takes hours of the database's time takes as long as the requests in it.
"""

from __future__ import annotations

import sys

from partita.clock import system_clock
from partita.testing.embedded import database
from partita.testing.serving import in_thread


def main() -> None:
    (capacity,) = sys.argv[1:] or ("enforce",)
    with database(capacity=capacity) as served, in_thread(served, "127.0.0.1", 0) as url:
        served.clock.set(system_clock())
        print(url, flush=True)
        for line in sys.stdin:
            served.clock.advance(seconds=float(line))
            print("moved", flush=True)


if __name__ == "__main__":
    main()
