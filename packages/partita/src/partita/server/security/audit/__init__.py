"""Who did what, when and from where: a log whose lines are chained, so that a gap shows."""
