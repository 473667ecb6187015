"""The examples run from where a user has them (the blocks of the pages: test_docs.py)."""

from pathlib import Path

import pytest

from dpbench.cli import main
from dpbench.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


def test_the_example_algorithm_runs_from_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["run", "--algo", f"{ROOT / 'examples' / 'my_algorithm.py'}:MyAlgorithm", "--dataset", "synthetic",
              "--eps", "1", "--seeds", "3", "--jobs", "1"])  # fmt: skip
    out, err = capsys.readouterr()
    assert exit_.value.code in (0, None), err
    assert out.splitlines()[2].split()[:2] == ["synthetic", "averaged-gd"]


def test_breast_cancer_is_private_in_ten_lines(capsys):
    text = (ROOT / "examples" / "own_data.py").read_text(encoding="utf-8")
    exec(compile(text, "own_data.py", "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("(")[1].split(",")[0] for line in lines] == ["ε = 1", "ε = 3", "ε = 10"]
    assert float(lines[-1].split()[1].rstrip(",")) > 0.8
    assert (
        len([line for line in text.partition("import dpbench")[2].splitlines() if line.strip() and line[0] != "#"])
        <= 10
    )


def test_an_algorithm_from_a_file_runs_on_one_problem_unless_it_names_an_experiment(tmp_path, monkeypatch):
    import dpbench
    from dpbench.experiments import running

    monkeypatch.setattr(running, "_home_problems", lambda home: ([f"problems of {home}"], {}))
    file = ROOT / "examples" / "my_algorithm.py"
    runs = dpbench.run_algorithm(f"{file}:MyAlgorithm", seeds=1, jobs=1, settings={"T": 2}, results=tmp_path)
    assert set(runs.rows()["problem"]) == {"synthetic"}
    (tmp_path / "mine.py").write_text(file.read_text().replace("    title =", '    home = "accelerated"\n    title ='))
    for name, home in ((f"{tmp_path / 'mine.py'}:MyAlgorithm", "accelerated"), ("dp-gd", "second_order")):
        with pytest.raises(UserError, match=f"problems of {home}"):
            dpbench.run_algorithm(name, seeds=1, jobs=1, results=tmp_path)
