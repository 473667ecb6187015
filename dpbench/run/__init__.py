"""From jobs to checked rows: batches, their execution here or on a cluster, and the store."""

from dpbench.algorithms import registry

registry.PROBES.update(
    {
        "probe-estimator": "dpbench.run.probes:EstimatorProbe",
        "probe-kinks": "dpbench.run.probes:KinksProbe",
        "probe-noise": "dpbench.run.probes:NoiseProbe",
        "probe-optimum": "dpbench.run.probes:OptimumProbe",
    }
)
