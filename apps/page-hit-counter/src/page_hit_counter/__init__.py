"""The page hit counter takes page visits and serves lists of the most popular pages.

A visit goes processor -> stream -> counter -> consumer -> table -> API. Each of these parts can run
in a process of its own. They share only the stream and the tables.
"""
