"""Sends random requests to Partita and DynamoDB Local, and compares the responses.

A round is what one seed makes (`generator.py`): some items, and a hundred mostly valid requests,
from `items.py`, `reading.py`, `legacy_parameters.py` and `statements.py`, with what
`expressions.py`, `document_paths.py` and `values.py` put into them, a few with a mistake
(`mistakes.py`). `twins.py` asks both servers and keeps them in one state; `hunt.py` gathers what
differs, by kind (`kinds.py`), each with its smallest example (`shrink.py`). What is intended is in
`rules/` and `intended.txt`, each with its reason and source; where DynamoDB Local merely writes a
value otherwise, in `canonical.py`. `test_fuzz.py` puts them together.
"""
