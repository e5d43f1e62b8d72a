"""Keeping spam out of the lists: simple rules, a random cut forest per brand, a quarantine.

Visits are judged in the processor, before they reach the stream. Rules withhold single visits; the
forest looks at a minute after it is over, and what it then takes back goes on the stream as hits
with a sign, as does what is released. So counts depend on the stream alone.
"""
