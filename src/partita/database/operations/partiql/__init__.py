"""ExecuteStatement and its kin: statements become actions and pages of the data plane."""
