"""The rights that each operation needs: actions, resources and condition keys."""
