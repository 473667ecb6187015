import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from dpbench import datasets
from dpbench.datasets import loading
from dpbench.errors import UserError
from tests.datasets.conftest import tiny_file, tiny_spec

SPEC = tiny_spec(tiny_file(), name="theirs")
NOT_A_SPEC = "text"


def test_all_data_sets_of_the_papers_are_there():
    assert set(datasets.names()) >= {
        *("a1a", "adult", "covertype", "covertype12", "ijcnn", "protein", "fmnist", "california", "madelon"),
        *(
            "mtp",
            "mtp-qsar",
            "dorothea",
            "synthetic",
            "log1",
            "log2",
            "square",
            "lognormal",
            "sparse-linear",
            "accelerated",
        ),
    }


def test_every_description_is_complete():
    for name in loading.names():
        spec = datasets.describe(name)
        assert spec.name == name
        assert all((spec.title, spec.recipe, spec.rows, spec.columns)), name
        assert spec.synthetic or (spec.licence and spec.citation), name
        assert not spec.classes or sum(spec.classes.values()) == spec.rows, name
        for file in spec.files:
            assert file.sources or file.name in ("MeltingPoint.csv.gz", "bio_train_sample1000.dat.gz"), name
            assert all(len(digest) == 64 for digest in file.sha256), name


def test_register(registered):
    spec = tiny_spec(tiny_file())
    datasets.register(spec)
    datasets.register(spec)  # twice the same is no mistake
    assert datasets.describe("tiny") is spec
    with pytest.raises(UserError, match="the name tiny is taken"):
        datasets.register(tiny_spec(tiny_file()))
    with pytest.raises(UserError, match="'a1a' is not a DatasetSpec"):
        datasets.register("a1a")


def test_entry_points(monkeypatch):
    def entry_points(group):
        assert group == "dpbench.datasets"
        return [EntryPoint(name, f"{__name__}:{value}", group) for name, value in entries.items()]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    entries = {"theirs": "SPEC"}
    assert loading._known.__wrapped__()["theirs"] is SPEC
    entries = {"absent": "ABSENT", "wrong": "NOT_A_SPEC", "theirs": "SPEC"}
    with pytest.warns(UserWarning, match="is left out") as warned:
        known = loading._known.__wrapped__()
    assert len(warned) == 2
    assert "theirs" in known


def test_imports_stay_light():
    heavy = {"sklearn", "pandas", "scipy", "platformdirs", "requests", "matplotlib", "dp_accounting"}
    code = "import sys; from dpbench import datasets; datasets.names(); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert heavy.isdisjoint(out.split())


def test_the_readme_of_the_data_folder_lists_every_data_set():
    text = (Path(__file__).parents[2] / "datasets/README.md").read_text(encoding="utf-8")
    for spec in map(datasets.describe, loading.names()):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{spec.name}` |"))
        assert f"| {spec.rows:,} × {spec.columns:,} |" in row
        assert spec.licence in row
        assert all(f"`{file.name}`" in row for file in spec.files)
