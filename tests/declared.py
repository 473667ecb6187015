"""Artefacts, claims and errata of made-up papers, whose words are given in the call and not in a words.md."""

from dpbench.study.claims import Artefact, Claim, Erratum, keep


def artefact(name, title):
    return lambda function: keep(function, Artefact(name, title, function))


def claim(name, text, *, place="", shows="", why=()):
    return lambda function: keep(function, Claim(name, text, function, place, shows, tuple(why)))


def erratum(title, *, ran, misses, bounds):
    return lambda function: keep(function, Erratum(function.__name__, title, ran, misses, bounds, function))
