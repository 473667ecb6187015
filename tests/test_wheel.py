"""What a stranger installs works: a wheel in an empty environment, in another folder, by the documented commands."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = "from hatchling import build; import sys; print(build.{}(sys.argv[1]))"

pytestmark = pytest.mark.slow


def call(*command, cwd, **environment):
    # An environment without PYTHONPATH: what is imported is what is installed.
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DPBENCH_DATA")}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The files of the tree, as git has them or will: building leaves nothing behind in it."""
    folder = tmp_path_factory.mktemp("source")
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in names.stdout.decode().split("\0"):
        carried = name.startswith("results/full/leaderboard/") or not name.startswith(("results/", "figures/"))
        if name and carried and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    """The folder of an environment that has the wheel, and the dependencies of this one but not its dpbench."""
    folder = tmp_path_factory.mktemp("elsewhere")
    wheel = call(sys.executable, "-c", BUILD.format("build_wheel"), folder, cwd=source).split()[-1]
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    call(*install, folder / wheel, cwd=folder)
    # After the wheel's own files; a .pth file named in a .pth file is not read, so no editable dpbench comes along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_documented_commands_work_from_a_wheel(installed):
    command = installed / "env" / "bin" / "dpbench"
    where = call(installed / "env" / "bin" / "python", "-c", "import dpbench; print(dpbench.__file__)", cwd=installed)
    assert where.startswith(str(installed))

    def dpbench(*arguments):
        return call(command, *arguments, cwd=installed, DPBENCH_DATA=str(installed / "data"))

    assert "ready" in dpbench("fetch", "synthetic")
    assert "dp_accounting" in dpbench("run", "--algo", "dp-gd", "--dataset", "synthetic", "--eps", "1", "--seeds", "2",
                                      "--set", "T=10", "--jobs", "1")  # fmt: skip
    dpbench("run", "--experiment", "zeroth_order/tree_noise", "--profile", "quick", "--jobs", "1")
    dpbench("report", "--experiment", "zeroth_order", "--profile", "quick")
    assert (installed / "figures" / "quick" / "zeroth_order" / "tree_noise.png").is_file()
    assert (installed / "figures" / "quick" / "index.html").is_file()
    table = installed / "mine.csv"
    table.write_text("a,b,label\n" + "".join(f"{i % 7 / 7},{i % 5 / 5},{i % 2}\n" for i in range(1500)))
    assert "dp-gd" in dpbench("compare", "--data", table, "--target", "label", "--algo", "dp-gd", "--seeds", "1")
    assert "pass" in dpbench("audit", "--algo", "dp-gd", "--eps", "4")


def test_a_paper_of_ones_own_is_begun_installed_run_reported_and_removed(installed):
    python, command = (installed / "env" / "bin" / name for name in ("python", "dpbench"))

    def dpbench(*arguments):
        return call(command, *arguments, cwd=installed, DPBENCH_DATA=str(installed / "data"))

    def pip(*arguments):
        call(sys.executable, "-m", "pip", "--python", python, *arguments, "--quiet", cwd=installed)

    dpbench("new", "paper", "my_paper")
    assert len((installed / "my_paper" / "my_paper" / "__init__.py").read_text().splitlines()) <= 60
    pip("install", "--no-deps", "--no-index", "--no-build-isolation", installed / "my_paper")
    own, of = installed / "own", ("--experiment", "my_paper", "--profile", "quick")
    dpbench("run", *of, "--jobs", "1", "--results", own)
    assert [folder.name for folder in (own / "quick").iterdir()] == ["my_paper"]
    assert "120" in dpbench("status", *of, "--results", own)
    dpbench("report", *of, "--results", own, "--out", installed / "drawn")
    page = (installed / "drawn" / "quick" / "my_paper" / "index.html").read_text(encoding="utf-8")
    assert "Objective perturbation beats output perturbation" in page
    assert "held" in dpbench("report", *of, "--check", "--results", own)
    assert "0 moved" in dpbench("diff", own / "quick", own / "quick")
    assert "My paper" in dpbench("list", "--cite", "my_paper")
    pip("uninstall", "--yes", "my-paper")
    assert "my_paper" not in dpbench("list", "experiments")


def test_the_source_distribution_has_what_it_takes_to_build_and_test_itself(source, tmp_path):
    name = call(sys.executable, "-c", BUILD.format("build_sdist"), tmp_path, cwd=source).split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        has = {member.partition("/")[2] for member in archive.getnames()}
    listed = ("Makefile", ".ci/run", "pyproject.toml", "docs/conf.py", "examples/my_algorithm.py", "tests/conftest.py",
              "dpbench/py.typed", "dpbench/experiments/second_order/grid.toml", "datasets/README.md")  # fmt: skip
    assert set(listed) <= has
    assert not any("_build" in one or "__pycache__" in one for one in has)
