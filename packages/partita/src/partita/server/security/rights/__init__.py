"""Which rights a request needs: actions, on which resources, with which condition keys."""
