"""Stage `report`: all that the other stages found, as one page for the people who decide.

contents    what the folder holds, and which stages are missing
summary     what to know first, above all the `verdict`
diagram     the entity diagram, on top of `layout`
charts      bars of item sizes, key skew and costs
items       items of a model, made of the example rows that `analyze` kept
views       tables and indexes of a model with those items
test_runs   what tests found
risks       all that can go wrong; `unknowns` what nobody knows
page        the page: one HTML file that needs nothing else
"""
