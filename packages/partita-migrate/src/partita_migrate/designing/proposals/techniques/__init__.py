"""What serves reads that keys of rows do not: each with its price, its limit and the next best."""
