"""Whether a data folder is what the write path makes of it: every invariant (`partita check`)."""
