"""Parses the SQL of an access pattern exactly: its tests, joins, order, limit and changes.

`statement_parsing` is the entry. What is not fully understood is refused with a `NotExact`, because
requests that answer a slightly different question would be worse than none.
"""
