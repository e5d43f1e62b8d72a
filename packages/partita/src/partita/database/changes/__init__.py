"""The change log: every change of a table that has a stream, in order, for a day."""
