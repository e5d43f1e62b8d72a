"""Finding spam: rules for single visits, and a random cut forest for each brand."""
