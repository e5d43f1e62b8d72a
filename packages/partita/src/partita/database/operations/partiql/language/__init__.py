"""The PartiQL language: from the text of a statement to keys, ranges and compiled expressions.

    syntax/             text to tokens, tokens to a tree (`syntax_tree`)
    statement_compiler  a tree to a compiled statement: its table, condition, update or columns
    statement_plan      a compiled statement and a table to keys and ranges
    where_branches      the alternatives of WHERE, and which of them the service refuses to read

Conditions and assignments are compiled to those of `database/expressions`: there is no second
evaluator. The operations that execute statements are in the folder above.
"""
