"""What a stranger installs is this project, and one version is told everywhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpbench
from dpbench import experiments, files
from dpbench.cli import main
from dpbench.run import job as jobs
from dpbench.run.execute import code_version
from dpbench.run.job import make_job

ROOT = Path(__file__).resolve().parent.parent
# The package index has another project under the name dpbench: nothing may send anyone there.
FOREIGN = re.compile(r"(?:pip|pipx|uv|conda)[^\n]*\binstall\b[^\n;&|`]*?(?<![\w./-])dpbench(?![\w/-])|\bdpbench\[\w")


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("pip install 'dpbench[fast]'", True),
        ("python -m pip install --upgrade dpbench", True),
        ('pip3 install "dpbench==0.2"', True),
        ("the extra dpbench[dask]", True),
        ("pip install '.[fast]'", False),
        ("pip install ./dpbench", False),
        ("pip install . && dpbench fetch all", False),
        ("pip install dpbench-0.2.0-py3-none-any.whl", False),
    ],
)
def test_the_pattern_finds_instructions_to_install_the_other_project(text, foreign):
    assert bool(FOREIGN.search(text)) == foreign


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is kept is known in a clone")
def test_nothing_is_kept_at_the_top_that_is_not_the_projects():
    """A file that an attack on the audit had written where the tests were started was committed, and nobody saw it."""
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = "benchmarks datasets docs dpbench examples figures paper papers requirements results rivals tests"
    pages = "README.md CHANGELOG.md CONTRIBUTING.md CODE_OF_CONDUCT.md SECURITY.md CITATION.cff LICENSE"
    settings = ".ci .github .gitignore .pre-commit-config.yaml Makefile pyproject.toml"
    assert {path.split("/")[0] for path in kept.split("\0") if path} == set(f"{folders} {pages} {settings}".split())


def test_nothing_tells_to_install_the_other_project():
    files = [ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run")]
    for folder in ("docs", "dpbench", "benchmarks", "examples"):
        found = (path for path in (ROOT / folder).rglob("*") if "_build" not in path.parts)
        files += [path for path in found if path.suffix in (".md", ".py", ".toml", ".html")]
    wrong = [f"{path.relative_to(ROOT)}: {found[0]}" for path in files if (found := FOREIGN.search(path.read_text()))]
    assert not wrong


def test_what_make_again_makes_is_there():
    (listed,) = re.findall(r"^AGAIN := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for reference in listed.replace("\\\n", " ").split():
        name, _, artefact = reference.partition("/")
        known = {one.name for one in experiments.get(name).artefacts}
        assert artefact in known | {""}, reference


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".ci" / "run"], ids=lambda path: path.name
)
def test_ci_names_only_what_is_there(path):
    said, made = path.read_text(), (ROOT / "Makefile").read_text()
    extras = files.read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert set(re.findall(r"\bmake ([a-z]+)", said)) <= set(re.findall(r"^([a-z]+):", made, re.MULTILINE))
    assert set(re.findall(r"\.\[(\w+)\]", said)) <= set(extras)
    named = re.findall(r"\b(?:tests|examples|dpbench|requirements)/[\w./]+", said)
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_name_and_version_are_told_once():
    project = files.read_toml(ROOT / "pyproject.toml")
    assert project["project"]["name"] == dpbench.DISTRIBUTION
    assert project["tool"]["hatch"]["version"]["path"] == "dpbench/version.py"
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == dpbench.__version__


def test_the_command_and_the_rows_say_distribution_and_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"dpbench {dpbench.__version__} ({dpbench.DISTRIBUTION})\n"
    assert code_version().startswith(f"{dpbench.DISTRIBUTION} {dpbench.__version__}")


def test_a_new_version_leaves_the_keys_as_they_are(monkeypatch):
    job = {"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "seed": 0, "settings": {"T": 7}}
    before = make_job(**job).key
    for module in [module for name, module in sys.modules.items() if name.startswith("dpbench")]:
        if hasattr(module, "__version__"):
            monkeypatch.setattr(module, "__version__", "9.9.9")
    jobs._keys_like.cache_clear()
    assert make_job(**job).key == before
