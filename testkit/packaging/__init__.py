"""Wheels, virtual environments and function packages that tests build."""
