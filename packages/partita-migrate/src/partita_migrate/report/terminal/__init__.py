"""Prints the results of commands for people: one screen per stage, the details are in its files."""
