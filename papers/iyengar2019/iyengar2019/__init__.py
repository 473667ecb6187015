"""Iyengar, Near, Song, Thakkar, Thakurta and Wang, "Towards practical differentially private convex optimization"."""

from dpbench.study.experiment import Experiment

from iyengar2019 import claims, errata, figures

EXPERIMENT = Experiment(
    name="iyengar2019",
    title="Towards practical differentially private convex optimization",
    citation="Iyengar, Near, Song, Thakkar, Thakurta, Wang, IEEE S&P 2019",
    package=__name__,
    modules=(figures, claims, errata),
    short="Practical private ERM",
)
