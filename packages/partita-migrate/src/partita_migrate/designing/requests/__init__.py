"""Plans which requests answer a statement on a design, exactly, or says why none can."""
