"""`partita users` and `partita policies`: the directory of a data folder, changed by hand."""
