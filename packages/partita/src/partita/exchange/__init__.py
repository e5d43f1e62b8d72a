"""Tables in and out of files, and as they were: export, import, diff, and reads at a moment.

All of it goes over the wire, so that it works with Amazon DynamoDB too.
"""
