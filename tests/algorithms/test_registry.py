"""Finding methods: a user's file is read once per state of the disk, and what follows from what a method releases."""

import dataclasses
import json
import os
from pathlib import Path

import msgspec
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, AuditCase, Disclosure, make_settings
from dpbench.run.execute import execute
from dpbench.run.job import make_job

MINE = """
from dpbench.algorithms.base import Algorithm, Disclosure

class Mine(Algorithm):
    name = "mine"
    version = {version}
    discloses = (Disclosure("w", "the iterate"),)

    def run(self, problem, W, mechanisms, settings, trace):
        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label="w")
"""


def test_a_file_is_read_once_for_a_job_from_its_name_to_its_row(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE.format(version=1))
    reads, whole = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path.name) or whole(path))
    job = make_job(problem="synthetic", algorithm=f"{tmp_path / 'mine.py'}:Mine", epsilon=1.0, seed=0)
    ((row,), _) = execute([job])
    assert row.status == "done"
    assert reads.count("mine.py") == 1


def test_an_edited_file_is_read_again_and_its_jobs_are_new_ones(tmp_path):
    path = tmp_path / "mine.py"
    found = []
    for version in (1, 22):
        path.write_text(MINE.format(version=version))
        found.append((algorithms.get(f"{path}:Mine").version, algorithms.reference(f"{path}:Mine")[1]))
    assert [version for version, _ in found] == [1, 22]
    assert found[0][1] != found[1][1]


@pytest.mark.parametrize(
    ("name", "alone"),
    [("dp-gd", True), ("adassp", True), ("dp-newton", True), ("dp-sgd", False), ("aop", False), ("dp-nag", False)],
)
def test_whether_it_releases_gaussians_alone_follows_from_what_it_discloses(name, alone):
    assert algorithms.get(name).gaussian is alone


def test_one_release_of_another_kind_or_none_at_all_is_not_gaussian():
    class Two(Algorithm):
        discloses = (Disclosure("a", "a"), Disclosure("b", "b", "Laplace"))

    assert not Two().gaussian
    assert not Algorithm().gaussian


def kept(name: str, found: dict) -> dict:
    """What the file of tests/golden says, by method. DPBENCH_GOLDEN=write writes it anew, for new methods."""
    path = Path(__file__).parents[1] / f"golden/{name}.json"
    if os.environ.get("DPBENCH_GOLDEN") == "write":
        lines = [f"{json.dumps(key)}: {json.dumps(one, sort_keys=True)}" for key, one in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def test_what_a_key_leaves_out_means_what_it_meant():
    """A key has no setting at its default, so another default would change what kept rows are rows of."""
    found = {}
    for name in algorithms.names(plugins=False):
        algorithm, fixed = algorithms.resolve(name)
        (fields,) = msgspec.json.schema_components([algorithm.Settings])[1].values()
        found[name] = json.loads(msgspec.json.encode({"fixed": fixed, **fields["properties"]}))
    assert kept("settings", found) == found


def test_what_is_audited_searched_and_estimated_is_what_it_was():
    """Bounds of audits are of these pairs, tuned rows of these grids, and hours that are left of these flops."""

    def said(case):
        usual = dataclasses.asdict(AuditCase())
        return {name: value for name, value in dataclasses.asdict(case).items() if value != usual[name]}

    found = {}
    for name in algorithms.names(plugins=False, wrappers=True):
        algorithm, fixed = algorithms.resolve(name)
        settings, sizes = make_settings(algorithm, fixed), ((997, 13), (400_000, 900), (2000, 300_000))
        one = {
            "audited": said(algorithm.audit_case),
            "canaries": [said(case) for case in algorithm.canaries],
            "inspected": said(algorithm.inspection_case()),
            "tuned": algorithm.tuning,
            "flops": [float(f"{algorithm.work(n, d, settings):.9g}") for n, d in sizes],
            "at once": [algorithm.batch_size(n, d) for n, d in sizes],
        }
        found[name] = json.loads(msgspec.json.encode(one))
    assert kept("cases", found) == found
