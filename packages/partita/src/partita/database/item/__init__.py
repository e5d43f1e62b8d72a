"""Items: attribute values, numbers, ordered key bytes and sizes; pure functions without state."""
