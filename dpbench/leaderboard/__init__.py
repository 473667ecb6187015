"""The leaderboard: who enters, at which settings, how rows become places."""
