"""The PartiQL language: from the text of a statement to keys, ranges and compiled expressions.

    tokens      text to tokens, with their positions
    parse       tokens to a tree (`nodes`): statements here, expressions in `terms`
    compile     a tree to a compiled statement: which table it reads or writes, and its condition
    plan        a compiled statement and a table to keys and ranges
    branches    the alternatives of WHERE, and which of them the service refuses to read

Conditions and assignments are compiled to those of `database/expressions`: there is no second
evaluator. The operations that execute statements are in `database/operations/partiql`.
"""
