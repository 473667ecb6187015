"""`python -m dpbench.datasets.pinning` writes `pinned.toml` anew: see `pins`."""

from __future__ import annotations

from dpbench.datasets import cache, loading, pins, registry


def main() -> None:
    """Pin every data set of the benchmark that is fetched; the others keep what they have."""
    found = dict(pins.pinned())
    for name in registry.names():
        spec = registry.describe(name)
        if not loading.available(name) or not spec.prepare.__module__.startswith("dpbench."):
            continue
        parts = cache.map_parts(loading.load(name).folder)
        found[spec.versioned] = pins.Pin(cache.digest(parts), pins.fingerprint(parts))
    lines = ["# The arrays of each data set and recipe version; written by dpbench.datasets.pinning\n"]
    for name, pin in sorted(found.items()):
        sums = "".join(f'fingerprint."{part}" = [{a!r}, {b!r}]\n' for part, (a, b) in pin.fingerprint.items())
        lines.append(f'\n[{name}]\nsha256 = "{pin.sha256}"\n{sums}')
    pins.FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
