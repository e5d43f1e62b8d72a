"""`partita backup` and `partita restore`: copies of the whole database, outside of it."""
