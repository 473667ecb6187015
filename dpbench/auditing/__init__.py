"""Empirical lower bounds on the privacy loss of what is implemented, against what its ledger claims."""
