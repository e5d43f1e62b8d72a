"""Computing for workflows, in processes of their own: nothing of the language runs in the process
that answers. See `pool.py` for how jobs are shared out, and `worker.py` for what bounds them."""
