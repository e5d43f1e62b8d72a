"""The proof of writes: a statement on a private copy, the requests on tables of their own."""
