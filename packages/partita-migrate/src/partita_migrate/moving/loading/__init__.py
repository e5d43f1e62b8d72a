"""Stage `load`: rows go into the state store, and from there as items into the target."""
