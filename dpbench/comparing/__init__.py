"""Ranking the private methods on data of one's own."""
