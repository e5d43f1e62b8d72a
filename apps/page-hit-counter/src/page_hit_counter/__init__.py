"""The page hit counter: visits in, lists of what is most popular out.

A visit goes processor -> stream -> counter -> consumer -> table -> API. Each of these parts can run
in a process of its own; they share nothing but the stream and the tables.
"""
