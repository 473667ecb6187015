"""greedy_coordinate: Mangold, Bellet, Salmon, Tommasi, "High-dimensional private empirical risk minimization by greedy
coordinate descent", AISTATS 2023."""
