"""`partita export`, `import`, `diff`, `scan` and `query`: tables in files, and their past.

These commands only use the DynamoDB API, so they work with Amazon DynamoDB too.
"""
