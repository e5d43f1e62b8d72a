"""Which requests answer a statement on a design, exactly, or why none do."""
