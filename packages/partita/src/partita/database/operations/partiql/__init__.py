"""The PartiQL operations, which carry out statements as actions and pages of the data plane."""
