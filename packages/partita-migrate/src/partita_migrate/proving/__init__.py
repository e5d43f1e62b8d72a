"""Stage `test`: proves a design. The source's own rows are loaded, and both sides answer every
statement."""
