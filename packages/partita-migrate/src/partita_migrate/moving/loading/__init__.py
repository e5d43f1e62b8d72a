"""The parts of a load: rows into the state store, and from there as items into the target."""
