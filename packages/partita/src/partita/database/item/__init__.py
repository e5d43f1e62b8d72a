"""Items: attribute values, numbers, ordered key bytes, sizes. Pure functions, no state."""
