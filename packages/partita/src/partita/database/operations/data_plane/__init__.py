"""The data plane: operations that read and write items, singly, in batches and transactions."""
