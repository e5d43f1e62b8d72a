"""A small web framework over the HTTP server: routes, requests and responses for the console and
the apps.
"""
