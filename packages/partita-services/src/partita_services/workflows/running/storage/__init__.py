"""The store of workflows: machines, executions and their histories, in a table."""
