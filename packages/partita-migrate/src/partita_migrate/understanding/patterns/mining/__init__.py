"""Mines access patterns from the statements that a database has really run.

`statement_statistics` and `statement_logs` read statements from the server and from files.
`normalized_statements` reduces them to their shape, `mined_statements` works out once per shape
what it asks of each table, and `pattern_miner` merges shapes into named patterns. Statements that
are not understood are listed with the reason, never dropped.
"""
