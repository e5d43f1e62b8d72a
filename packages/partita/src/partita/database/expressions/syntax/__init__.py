"""The syntax of expressions: tokens, parser and reserved words."""
