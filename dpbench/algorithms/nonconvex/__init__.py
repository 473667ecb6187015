"""Second-order stationary points of smooth nonconvex problems: opt and its variants, dp-tr, dp-gd-2ns.

What a replicate releases next depends on what it released before, so each method is written for one replicate, as a
generator that asks for what it needs; `oracle` answers all replicates with one product over the data.
"""
