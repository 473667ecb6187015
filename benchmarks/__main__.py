"""`make bench`: every measurement, one `name: ratio` per line."""

from benchmarks import memory_bench, problems_bench, startup_bench

if __name__ == "__main__":
    for bench in (startup_bench, problems_bench, memory_bench):
        bench.main()
