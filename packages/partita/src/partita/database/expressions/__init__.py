"""Expressions: text to tokens to tree to closures, compiled once and kept in a cache.

The rules and texts are those of the service; where its public recordings are silent they were
observed on DynamoDB Local. Nothing here reads a table: an expression gets an item and gives a
verdict, a new item or a part of it.
"""
