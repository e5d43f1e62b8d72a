"""Stage `model`: designs are proposed, checked, compared and written down."""
