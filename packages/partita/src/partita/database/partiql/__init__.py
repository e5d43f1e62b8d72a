"""PartiQL: from the text of a statement to what the expressions and the tables understand.

    tokens      text to tokens, each with its place
    parse       tokens to a tree (`nodes`), statements here, expressions in `terms`
    compile     a tree to a compiled statement: where it reads or writes, under which condition
    plan        a compiled statement and a table to keys and ranges
    branches    the alternatives of WHERE, and which of them the service does not read

Conditions and assignments become those of `expressions`; there is no second evaluator. Carrying a
statement out is the affair of `operations.statements`.
"""
