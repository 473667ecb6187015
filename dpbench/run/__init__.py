"""From jobs to checked rows: batches, their execution here or on a cluster, and the store."""
