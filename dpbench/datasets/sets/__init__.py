"""The data sets of the benchmark, a file for those of one source."""
