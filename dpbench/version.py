"""What this is: the version, and the name under which it is installed."""

__version__ = "0.3.0"
DISTRIBUTION = "dp-optimiser-bench"  # what pip calls it: the name dpbench is another project's
