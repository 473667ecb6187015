"""Pin the arrays of every data set of the benchmark that is fetched; the others keep what they have.

`python -m benchmarks.pin_data` writes dpbench/datasets/pinned.toml anew: see `dpbench.datasets.cache`.
"""

from __future__ import annotations

from dpbench import datasets
from dpbench.datasets import cache


def main() -> None:
    pins = dict(cache.pinned())
    for name in datasets.names():
        spec = datasets.describe(name)
        if not datasets.available(name) or not getattr(spec.prepare, "func", spec.prepare).__module__.startswith(
            "dpbench."
        ):
            continue
        parts = cache.map_parts(datasets.load(name).folder)
        pins[spec.versioned] = cache.Pin(cache.digest(parts), cache.fingerprint(parts))
    lines = ["# The arrays of each data set and recipe version; written by benchmarks/pin_data.py\n"]
    for name, pin in sorted(pins.items()):
        sums = "".join(f'fingerprint."{part}" = [{a!r}, {b!r}]\n' for part, (a, b) in pin.fingerprint.items())
        lines.append(f'\n[{name}]\nsha256 = "{pin.sha256}"\n{sums}')
    cache.FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
