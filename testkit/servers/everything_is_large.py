"""`partita`, with every request of the data plane decided as the largest ones are: by drafts.

For the black-box tests, which then say whether both ways give the same answers. In plain Python,
where constants can be changed.
"""

from __future__ import annotations

from partita.cli import main
from partita.server import dispatch

dispatch.__dict__.update(LARGE_BODY_BYTES=-1, LARGE_BODY_QUOTES=-1)
main()
