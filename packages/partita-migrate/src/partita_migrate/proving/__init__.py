"""A design is a claim, and `test` is its proof: the source's own rows, asked on both sides."""
