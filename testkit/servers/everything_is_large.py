"""Runs `partita` so that every data plane request is decided as a large one, in a draft.

The black-box tests run on it too, and so check that both ways give the same responses. It needs the
plain Python modules, because constants of compiled ones cannot be changed.
"""

from __future__ import annotations

from partita.cli import main
from partita.server import dispatch

dispatch.__dict__.update(LARGE_BODY_BYTES=-1, LARGE_BODY_QUOTES=-1)
main()
