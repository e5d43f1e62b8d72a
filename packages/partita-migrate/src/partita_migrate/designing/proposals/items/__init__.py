"""Decides what the items of each entity hold, in whichever tables they end up."""
