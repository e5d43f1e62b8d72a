"""The relational counter that the service replaced, kept to compare with and to migrate from."""
