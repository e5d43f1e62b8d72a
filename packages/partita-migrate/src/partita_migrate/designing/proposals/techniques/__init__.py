"""Ways to serve reads that the keys of rows do not serve, each with its price, its limit and the
next best way."""
