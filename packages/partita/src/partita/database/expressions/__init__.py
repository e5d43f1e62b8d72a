"""Expressions: text to tokens to tree to closures, compiled once and kept in a cache.

The rules and error texts are the service's. Where no public recording shows them, they were
observed on DynamoDB Local. Nothing here reads a table: an expression takes an item and returns
true or false, a new item, or a part of the item.
"""
