"""Mines access patterns from the statements that a database has really run.

Statements come from the server's statistics (`statement_statistics`) or from its logs
(`statement_logs`). They are normalized, so that values do not matter (`normalized_statements`),
parsed once per normalized form (`mined_statements`), and merged into named patterns
(`pattern_miner`). Statements that are not understood are listed with the reason, never dropped.
"""
