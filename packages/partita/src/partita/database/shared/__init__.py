"""A database that several servers share: requests run in rounds over what they ask for."""
