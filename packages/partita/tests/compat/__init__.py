"""Sends the same requests to Partita and DynamoDB Local, and compares the whole responses.

`cases_*.py` say what is sent, one module per family of operations, in the notation of
`notation.py`. `console_endpoints.py` plays a case to a server, `response_members.py` takes out of
an answer what cannot be the same twice, and `table_diff.py` lists where Partita answers otherwise
on purpose, each with its reason. `test_compat.py` puts them together.
"""
