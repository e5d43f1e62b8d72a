"""Random requests to Partita and to DynamoDB Local, and the answers compared.

`generator.py` makes rounds of requests from a seed, `twins.py` asks both servers and keeps them in
one state, `kinds.py` says what sort of difference there is, `intended.py` which are wanted, and
`shrink.py` finds the smallest request that shows one. `test_fuzz.py` puts them together.
"""
