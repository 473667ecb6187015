"""One archive format for papers and submissions, and the check of a paper's archive.

`content` is the format; `paper` makes an experiment's archive and `verifying` checks one; `sandbox` runs its code.
"""
