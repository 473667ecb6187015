"""Measurements of speed and memory, as ratios taken in one run."""
