"""Stage `report`: the results of all other stages on one page, for the people who decide.

folder_contents         what the folder holds, and which stages are missing executive_summary
what to know first, above all the `verdict` drawings                the entity diagram, charts, and
tables of a model with example items test_runs               the progress of the tests risk_register
everything that can go wrong unmeasured_assumptions  everything that nobody knows report_page
the page: one HTML file that needs nothing else modeler_designs         the designs for the
console's modeler terminal                what the commands print templates               the texts
of the page
"""
