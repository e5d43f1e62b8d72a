"""Evaluation of the States Language in processes of their own: no user's definition or expression
is evaluated in the process that answers requests. `evaluation_pool.py` shares the jobs out,
`evaluation_worker.py` limits them."""
