"""Keeping spam out of the lists: rules, a random cut forest for each brand, and a quarantine.

Visits are judged in the processor, before they reach the stream. Rules withhold single visits. The
forest judges each minute after it has ended. Hits that it takes back go on the stream as negative
adjustments, and hits that a person releases as positive ones. Counts therefore depend only on the
stream.
"""
