"""The page of every method's privacy is what the code declares, and nothing else."""

import importlib.util
import re
from pathlib import Path

from dpbench import algorithms

SPEC = importlib.util.spec_from_file_location("privacy_page", Path(__file__).parents[1] / "docs" / "privacy_page.py")
privacy_page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(privacy_page)


def test_every_method_is_there_with_every_release_it_declares():
    found = {one.name: one for one in privacy_page.sections()}
    assert set(found) == {name for name in algorithms.names(wrappers=True) if not algorithms.resolve(name)[1]}
    for name, one in found.items():
        method = algorithms.get(name)
        labels = [each.label + (f" ({each.when})" if each.when else "") for each in method.discloses]
        assert [row[0] for row in one.releases] == labels
        assert all(len(row) == len(privacy_page.HEADER) for row in one.releases)
    facts = dict(found["damped-newton"].facts)
    assert facts["private"] == "no: without paying it takes its step, from the gradient and the Hessian without noise"
    assert "M_j" in dict(found["dp-gcd"].facts)["counts as public"]
    assert dict(found["dp-nag"].facts)["private"] == "yes, but not with `noise_scale = as-published-code`"
    assert "`--accounting paper (poisson)`" in dict(found["dp-sgd-1"].facts)["private"]
    why = {setting: (methods, flaw) for setting, methods, flaw in privacy_page.breaking()}
    assert why["`selection = published`"][0] == "dp-gcd"
    assert "2ε'" in why["`selection = published`"][1]
    # What second_order marks as no guarantee.
    assert [why[f"`{one}`"][0] for one in ("reset = optimum", "rows = undivided")] == [
        "dp-newton, dp-newton-minibatch",
        "aop",
    ]
    assert all("dp-newton" in why[f"`--accounting released-{one}`"][0] for one in ("february", "july"))
    assert "dp-nag" in why["`noise_scale = as-published-code`"][0]
    assert "b/√2" in why["`noise_scale = as-published-code`"][1]
    gradient = found["dp-gd"].releases[0]
    assert gradient[3:5] == ["L₀/n", "2·L₀/n"]


def test_a_method_that_is_new_is_on_the_page(monkeypatch):
    from dpbench.algorithms import registry
    from dpbench.algorithms.base import Algorithm, Disclosure

    class OneShot(Algorithm):
        name, title = "one-shot", "One Shot"
        discloses = (Disclosure("answer", "the answer|to all", "Laplace", "1", add_remove="1/n"),)

    monkeypatch.setattr(registry, "BUILTIN", {"one-shot": "x:y"})
    monkeypatch.setattr(registry, "ALIASES", {})
    monkeypatch.setattr(registry, "WRAPPERS", {})
    monkeypatch.setattr(registry, "get", lambda name: OneShot())
    text = privacy_page.text()
    assert "| answer | the answer\\|to all | 1 × Laplace | 1/n | 2·1/n |" in text


def test_the_audits_bounds_stand_beside_their_releases_and_are_below_their_claims():
    found = {one.name: one.audited for one in privacy_page.sections()}
    assert any(found.values())
    for name, rows in found.items():
        labels = algorithms.get(name).labels | {"whole run", "last iterate"}
        for label, at, bound, claim in rows:
            assert label in labels, name
            assert re.fullmatch(r"ε = 4, [\d,]+ runs", at)
            assert float(bound.split(" ≥ ")[1]) <= float(claim) * (1 + 1e-3), name


def test_markdown_tables_are_whole_and_facts_are_there():
    text = privacy_page.text()
    assert all(f"- *{name}*: {told}" in text for one in privacy_page.sections() for name, told in one.facts)
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in {3, 4, 5, 7}, line
