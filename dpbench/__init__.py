"""dpbench: a benchmark of differentially private optimisers."""
