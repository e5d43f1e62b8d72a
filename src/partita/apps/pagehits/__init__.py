"""The page hit counter: visits in, lists of what is most popular out.

A visit goes processor -> stream -> counter -> consumer -> table -> API. Each part is a module that
can run in a process of its own, and speaks to the others through the stream and the tables only.
"""
