"""Machines, executions and their histories in a table, over the wire."""
