"""Solvers of other libraries as entrants of dpbench's leaderboard."""
