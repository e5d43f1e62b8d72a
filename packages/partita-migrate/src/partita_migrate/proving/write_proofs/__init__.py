"""The proof of writes: the statement runs on a private copy, the requests on separate tables."""
