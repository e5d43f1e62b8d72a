"""The control plane: operations that create, change and describe tables and their settings."""
