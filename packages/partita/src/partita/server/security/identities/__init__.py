"""Identities: users, groups and roles with their keys and policies, and their sessions."""
