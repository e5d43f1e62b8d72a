"""Who may do what: signatures, users, sessions, policies, and the records of it."""
