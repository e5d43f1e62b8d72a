"""Whether this very server can do what a migration asks of it: the backup, following its changes,
and keeping the statements that it runs. Each check says what to change where the answer is no.

What the user of the connection may not look at counts as not known, and is said so.
"""
