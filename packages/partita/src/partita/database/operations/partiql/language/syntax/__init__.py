"""The syntax of PartiQL: tokens, keywords, the syntax tree, and the parser that builds it."""
