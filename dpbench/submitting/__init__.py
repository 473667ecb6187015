"""Joining the leaderboard: a method's rows in one archive, checked without running what is in it, and merged."""
