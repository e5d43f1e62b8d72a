"""Decides what becomes of each source table: items of its own, or a part of another table's items.

Each rule is a function in a file of its own; `assign_roles` lists them in order.
"""
