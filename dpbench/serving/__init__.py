"""A method in a process that holds no rows, and the server that holds them: noised sums alone pass between the two."""
