"""A private model of one's own: fit, save and load it, plan it before its data are touched, and what goes with it."""
