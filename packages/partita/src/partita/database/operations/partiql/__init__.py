"""The PartiQL operations: statements become actions and pages of the data plane."""
