"""Runs of one's own, as `dpbench run --algo` leaves them, in `dpbench report`."""

import html
import json
import math
import re
import shlex

import pandas as pd
import pytest

import dpbench
from dpbench import algorithms
from dpbench.cli import main
from dpbench.cli.report import report
from dpbench.errors import UserError
from dpbench.reporting import adhoc
from dpbench.run.job import make_job
from dpbench.run.store import Store
from dpbench.study.output import WORDS
from dpbench.study.overview import flags
from dpbench.study.style import look
from tests.batches import write
from tests.reporting.conftest import row
from tests.reporting.made_up_site import problems


@pytest.fixture
def own(tmp_path):
    """Three seeds of dp-gd at two ε with traces, and a method of the full profile that is better at ε = 1."""
    dpbench.run_algorithm(
        "dp-gd", "synthetic", [0.5, 1], seeds=3, settings={"T": 4}, trace=True, results=tmp_path / "results", jobs=1
    )
    better = {"algorithm": "dp-newton-hess-clip", "excess": 1e-6, "key": "n"}
    write(
        Store(tmp_path / "results", "full", "second_order"),
        [row(seed) | better | {"key": f"n{seed}"} for seed in range(5)]
        + [row(0) | better | {"key": "leaky", "algorithm": "dp-gd-oracle", "private": False, "excess": 1e-9}],
    )
    return tmp_path


@pytest.mark.thorough
def test_report_draws_own_runs_beside_the_full_profiles(own, monkeypatch, capsys):
    monkeypatch.chdir(own)
    with pytest.raises(SystemExit) as ended:
        main(["report", "--profile", "adhoc"])
    assert ended.value.code == 0
    assert "to read your own runs, open figures/adhoc/index.html" in capsys.readouterr().out
    folder = own / "figures" / "adhoc"
    assert problems(folder) == []
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Your best runs lose" in page
    assert "times what is lost by the best other private method" in page
    assert "# made from Python: results/adhoc/dp-gd\ndpbench report --profile adhoc" in page
    assert {path.stem for path in folder.glob("*.csv")} == {"runs", "excess", "curves"}
    table = (folder / "runs.md").read_text(encoding="utf-8")
    assert "full/second_order" in table
    assert "oracle" not in table  # what does not keep its ε is no yardstick


@pytest.mark.thorough
def test_own_runs_are_drawn_in_the_style_of_the_report_and_told_with_commas(own, monkeypatch):
    import matplotlib

    frames, drawn = [], adhoc._against_epsilon
    monkeypatch.setattr(
        adhoc, "_against_epsilon", lambda *given: frames.append(matplotlib.rcParams["axes.spines.top"]) or drawn(*given)
    )
    lines = list(adhoc.build(own / "results", own / "figures"))
    assert frames == [False]
    target = own / "figures" / "adhoc"
    titles = {"excess": "Excess loss against ε", "runs": "Your runs: excess loss by problem and ε",
              "curves": "Excess loss along the way"}  # fmt: skip
    assert lines == [
        *(f"{target / stem}.*  {title}" for stem, title in titles.items()),
        f"to read your own runs, open {target / 'index.html'}",
    ]
    page = (target / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<article id="(\w+)"', page) == [*titles, "commands"]
    (lead,) = re.findall(r'<p class="lead">(.+?)</p>', page)
    assert lead.startswith("Your best runs lose ")
    assert lead.endswith(" private method of the full profile, at its best settings.")
    assert [re.findall(rf'href="{stem}[.](\w+)">(\w+)</a>', page) for stem in titles] == [
        [(suffix, suffix.upper()) for suffix in suffixes] for suffixes in
        (("pdf", "svg", "png", "csv", "md"), ("md", "tex", "csv"), ("pdf", "svg", "png", "csv", "md"))
    ]  # fmt: skip
    assert "Mean excess loss against ε; bars: ± 1 standard error. Thick: your runs." in page
    assert "Mean excess loss after each iteration, over 3 seeds. Bands: ± 1 standard error." in page
    assert matplotlib.rcParams["axes.spines.top"]  # the user's own figures keep theirs
    line = adhoc._Line("synthetic", 1.0, "dp-gd", '{"T": 4, "step": 2.0}', "tight", "add-remove", 0.5, 0.1, 0.0, 3)
    assert line.cells("DP-GD", "–", "yours")[3] == "accounting tight, T=4, step=2, noise × 0.5"


def test_captions_of_own_runs_are_short(own):
    runs = Store(own / "results", "adhoc", "dp-gd")
    rows = runs.runs()
    outputs = list(adhoc._outputs(rows, runs.traces(), adhoc.beside(own / "results", rows)))
    assert [stem for stem, _, _ in outputs] == ["excess", "runs", "curves"]
    assert all(len(output.caption.split()) <= WORDS for _, _, output in outputs)


def test_runs_with_wrong_noise_are_lines_of_their_own_and_no_best_run(own):
    rows = Store(own / "results", "adhoc", "dp-gd").runs()
    wrong = [
        rows.assign(planted=factor, private=False, epsilon_planned=None, excess=excess, key=rows["key"] + str(factor))
        for factor, excess in ((0.5, 1e-9), (2.0, 1.0))
    ]
    tables = []
    for runs in (rows, pd.concat([rows, *wrong], ignore_index=True)):
        outputs = adhoc._outputs(runs, rows.iloc[:0], adhoc.beside(own / "results", runs))
        tables.append({stem: output for stem, _, output in outputs}["runs"])
    right, found = tables
    mine = found.frame[found.frame["runs"].eq("yours")]
    assert mine["seeds"].tolist() == ["3"] * 6
    assert mine["settings"].str.contains("noise × 0.5").sum() == mine["settings"].str.contains("noise × 2").sum() == 2
    assert set(mine.loc[mine["settings"].str.contains("noise"), "ε planned"]) == {"–"}
    assert found.finding == right.finding


OWN = """
from dpbench.algorithms.gradient_descent import DPGradientDescent

class Mine(DPGradientDescent):
    name, title = "my-gd", "My GD"
"""


@pytest.mark.thorough
def test_all_own_runs_are_in_one_figure_and_its_commands_run_as_printed(tmp_path, monkeypatch, capsys):
    """Also a method in a file, whose rows have its name alone; rows of other verbs are not drawn."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my method.py").write_text(OWN)
    words = ["--algo", "my method.py:Mine", "--algo", "dp-gd", "--dataset", "synthetic", "--eps", "1", "--eps", "2"]
    words = ["run", *words, "--seeds", "2", "--set", "T=3", "--jobs", "1"]
    write(Store("results", "adhoc", "submit-other"), [row(0) | {"key": "other", "algorithm": "other"}])
    for command in (words, ["report", "--profile", "adhoc"]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0
    page = (tmp_path / "figures" / "adhoc" / "index.html").read_text(encoding="utf-8")
    drawn = pd.read_csv("figures/adhoc/excess.csv")
    assert sorted(zip(drawn["algorithm"], drawn["epsilon"], strict=True)) == [
        ("dp-gd", 1.0), ("dp-gd", 2.0), ("my-gd", 1.0), ("my-gd", 2.0)
    ]  # fmt: skip
    lines = (tmp_path / "figures/adhoc/runs.md").read_text(encoding="utf-8").splitlines()
    assert sum("yours" in line and ("my-gd" in line or "dp-gd" in line) for line in lines) == 4
    epsilons = [line.split("|")[2].strip() for line in lines if "| synthetic" in line]
    assert epsilons == sorted(epsilons)  # a reader compares the methods at one ε
    printed = html.unescape(re.search(r"<pre>(.*?)</pre>", page, flags=re.DOTALL)[1]).strip().splitlines()
    assert printed == [shlex.join(["dpbench", *words]), "dpbench report --profile adhoc"]
    before = Store("results", "adhoc", "my-gd").ended().results
    capsys.readouterr()
    for command in printed:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[1:])
        assert ended.value.code == 0
    assert "nothing to do; 4 finished before" in capsys.readouterr().err
    assert Store("results", "adhoc", "my-gd").ended().results == before
    assert len(Store("results", "adhoc", "my-gd").commands()) == 1


def test_a_page_of_other_folders_is_drawn_again_by_the_command_on_it(tmp_path):
    """It named options that `dpbench report` does not have, or has for something else."""
    results, figures = str(tmp_path / "my results"), str(tmp_path / "drawn")
    write(Store(results, "adhoc", "dp-gd"), [row(0)])
    dpbench.report(profile="adhoc", results=results, figures=figures)
    page = (tmp_path / "drawn" / "adhoc" / "index.html").read_text(encoding="utf-8")
    printed = html.unescape(re.search(r"<pre>(.*?)</pre>", page, flags=re.DOTALL)[1]).strip().splitlines()[-1]
    verb, *words = shlex.split(printed)[1:]
    assert verb == "report"
    given = report.make_context("report", words).params
    assert (given["profile"], given["results"], given["figures"]) == ("adhoc", results, figures)


def test_without_own_runs_the_hint_is_a_command_that_makes_some(tmp_path):
    with pytest.raises(UserError, match="dpbench run --algo dp-gd --dataset synthetic --eps 1"):
        dpbench.report(profile="adhoc", results=tmp_path)
    with pytest.raises(UserError, match="goes without --experiment"):
        dpbench.report("second_order", profile="adhoc", results=tmp_path)


@pytest.mark.parametrize(
    ("algorithm", "given", "accounting", "relation"),
    [
        ("dp-gd", {"T": 7, "step": 2.0}, "paper", None),
        ("dp-newton-qu-add", {"T": 3, "theta": 0.4}, "tight", None),
        ("dp-gd", {"T": 7}, "tight", "replace-one"),
        ("opt-ls", {"alpha": 0.06}, "paper", None),
    ],
)
def test_the_flags_of_a_row_make_the_same_job(algorithm, given, accounting, relation):
    problem = "covertype12-logistic" if algorithm == "opt-ls" else "synthetic"
    wanted = {"problem": problem, "algorithm": algorithm, "epsilon": 1.0, "seed": 0}
    job = make_job(**wanted, settings=given, accounting=accounting, relation=relation)
    method = algorithms.get(job.algorithm)
    whole = json.dumps({name: getattr(job.parsed(), name) for name in method.Settings.__struct_fields__})
    words = flags(algorithm, whole, method.accounting(job.accounting), job.neighbours.value).split()
    told = list(zip(words[::2], words[1::2], strict=True))
    settings = dict(value.split("=") for flag, value in told if flag == "--set")
    others = {flag[2:]: value for flag, value in told if flag != "--set"}
    again = make_job(**wanted, settings=settings, **({"accounting": "paper"} | others))
    assert (again.settings, again.neighbours) == (job.settings, job.neighbours)
    assert method.accounting(again.accounting) == method.accounting(job.accounting)


def means_of(*lines):
    """Lines (problem, ε, method, mean) as `_outputs` and `beside` have them."""
    names = ["problem", "epsilon", "algorithm", "mean"]
    more = {"settings": "{}", "accounting": "bs16", "relation": "add-remove", "planted": 1.0, "se": 0.0, "seeds": 3}
    frame = pd.DataFrame(lines, columns=names).assign(**more, experiment="second_order")
    return frame.assign(private=frame["algorithm"].ne("dp-gd-oracle"), planned=0.9, checked="dp_accounting")


OTHER = "the best other private method of the full profile, at its best settings"


@pytest.mark.parametrize(
    ("own_runs", "theirs", "said"),
    [
        ([("a", 1, "dp-gd", 0.3), ("a", 1, "dp-sgd", 0.2)], [("a", 1, "aop", 0.1), ("a", 1, "dp-tr", 0.4)],
         f"Your best runs lose 2 times what is lost by {OTHER}"),
        ([("a", 1, "dp-gd", 0.3)], [("a", 1, "dp-gd", 0.1), ("a", 2, "aop", 0.1), ("b", 1, "aop", 0.1)], ""),
        ([("a", 1, "dp-gd", 0.3)], [("a", 1, "aop", 0.0)], ""),  # nothing is a multiple of no loss
        ([("a", 1, "dp-gd", 0.1), ("a", 2, "dp-gd", 0.2), ("b", 1, "dp-gd", 0.3)],
         [("a", 1, "aop", 0.2), ("a", 2, "aop", 0.2), ("b", 1, "aop", 0.1)],
         f"Your best runs lose less than {OTHER}, in 1 of 3 comparisons (problem, ε)"),
    ],
)  # fmt: skip
def test_the_finding_sets_your_best_run_against_the_best_other_method(own_runs, theirs, said):
    assert adhoc._finding(means_of(*own_runs), means_of(*theirs)) == said


def test_the_table_has_your_runs_and_the_five_best_methods_beside_them_at_each_epsilon():
    mine = means_of(("a1a", 2.0, "dp-gd", 0.3), ("a1a", 1.0, "dp-gd", 0.2), ("a1a", 1.0, "dp-gd-oracle", 0.1))
    methods = ("dp-sgd", "aop", "dp-mf", "dp-gd", "dp-cd", "dp-gcd")
    others = means_of(*(("a1a", 1.0, name, 0.1 + i) for i, name in enumerate(methods)), ("a1a", 1.0, "aop", 0.05))
    rows = pd.DataFrame({"status": ["done", "done", "defect", "defect"], "error": [None, None, "b", "a"]})
    made = adhoc._table(rows, mine, others)
    shown = made.frame[["problem", "ε", "method", "excess loss", "ε planned", "runs"]].to_numpy().tolist()
    assert [line[1:] for line in shown] == [
        ["1", "dp-gd-oracle (not private)", "0.1 ± 0", "0.9", "yours"],
        ["1", "dp-gd", "0.2 ± 0", "0.9", "yours"],
        ["1", "AOP (replace-one)", "0.05 ± 0", "", "full/second_order"],
        ["1", "DP-SGD", "0.1 ± 0", "", "full/second_order"],
        ["1", "DP-MF", "2.1 ± 0", "", "full/second_order"],
        ["1", "DP-GD", "3.1 ± 0", "", "full/second_order"],
        ["1", "DP-CD", "4.1 ± 0", "", "full/second_order"],
        ["2", "dp-gd", "0.3 ± 0", "0.9", "yours"],
    ]
    assert made.gaps == ["2 runs without a result: a, b"]
    assert made.method.startswith("4 runs of your own. From the full profile: up to 5 private methods")
    assert made.method.endswith("Your ε planned is checked by dp_accounting.")
    assert adhoc._table(rows[:1], mine.assign(checked=None), others).gaps == []


def test_the_methods_drawn_beside_yours_are_the_best_within_three_times_your_epsilon():
    mine = means_of(("a1a", 1.0, "dp-gd", 0.3), ("a1a", 2.0, "dp-gd", 0.2))
    names = ("aop", "dp-sgd", "dp-mf", "dp-cd", "dp-gcd", "dp-tr")
    far = [("a1a", epsilon, name, 6.0 - i) for epsilon in (0.3, 6.5) for i, name in enumerate(names)]
    near = [("a1a", epsilon, name, 1.0 + i) for epsilon in (0.34, 6.0) for i, name in enumerate(names)]
    drawn = adhoc._against_epsilon(mine, means_of(*far, *near)).figure.axes[0]
    labels = drawn.get_legend_handles_labels()[1]
    assert labels == [*(f"{look(name).label}, full profile" for name in names[:5]), "DP-GD, yours"]


def test_curves_are_means_over_seeds_after_the_start_each_with_what_it_is_of():
    settings = [("dp-gd", 0.5, '{"T":2}', 1.0), ("dp-gd", 2.0, "{}", 0.5), ("dp-sgd", 2.0, "{}", 1.0)]
    ended = pd.DataFrame([
        {"problem": "a1a" if name == "dp-gd" else "adult", "epsilon": epsilon, "algorithm": name, "settings": text,
         "accounting": "bs16", "relation": "add-remove", "planted": planted, "key": f"{name}{epsilon}{seed}"}
        for name, epsilon, text, planted in settings for seed in range(2)
    ])  # fmt: skip
    traces = pd.DataFrame([
        {"key": key, "iteration": i, "excess": (9.0 if i == 0 else 1.0 / i) + 0.5 * key.endswith("1")}
        for key in ended["key"] for i in (2, 0, 1)
    ])  # fmt: skip
    made = adhoc._curves(ended, traces)
    first, second = made.figure.axes
    assert [first.get_title(), second.get_title()] == ["a1a", "adult"]
    labels = ["DP-GD, ε = 0.5, T=2", "DP-GD, ε = 2, defaults, noise × 0.5", "DP-SGD, ε = 2, defaults"]
    assert first.get_legend_handles_labels()[1] + second.get_legend_handles_labels()[1] == labels
    for line in (*first.lines, *second.lines):
        assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([1, 2], [1.25, 0.75])
    assert [line.get_color() for line in first.lines] == list(adhoc.LINES[:2])
    low, high = (getattr(first.collections[0].get_paths()[0].vertices[:, 1], end)() for end in ("min", "max"))
    assert (low, high) == (0.5, 1.5)  # one standard error of two seeds
    assert (first.get_xlabel(), first.get_ylabel(), first.get_yscale()) == ("iteration", "excess loss", "log")
    assert made.caption == "Mean excess loss after each iteration, over 2 seeds. Bands: ± 1 standard error."
    assert set(made.data["seeds"]) == {2}


def test_your_settings_are_points_and_each_has_a_number_of_its_own():
    defaults = means_of(("a1a", 2.0, "dp-gd", 0.2), ("a1a", 1.0, "dp-gd", 0.3)).assign(se=0.05)
    others = means_of(("a1a", 1.0, "dp-gd", 0.4), ("adult", 1.0, "aop", 0.1)).assign(settings='{"T":3}', se=math.nan)
    mine = pd.concat([defaults, others])
    made = adhoc._against_epsilon(mine, means_of(("a1a", 1.0, "dp-sgd", 0.1), ("a1a", 0.5, "dp-sgd", 0.2)))
    first, second = made.figure.axes
    labels = ["DP-SGD, full profile", "DP-GD, yours", "DP-GD, yours (setting 2)"]
    assert first.get_legend_handles_labels()[1] == labels
    assert second.get_legend_handles_labels()[1] == ["AOP (replace-one), yours"]
    assert [line.get_xdata().tolist() for line in first.lines[:1]] == [[0.5, 1.0]]
    points, _, (bars,) = first.containers[0]
    assert (points.get_xdata().tolist(), points.get_ydata().tolist()) == ([1.0, 2.0], [0.3, 0.2])
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[0.25, 0.35], pytest.approx([0.15, 0.25])]
    assert points.get_color() == adhoc.LINES[0]
    assert first.containers[1][0].get_color() == adhoc.LINES[1]
    assert (first.get_xscale(), first.get_yscale(), first.get_xlabel()) == ("log", "log", "ε")
    assert made.caption.startswith("Mean excess loss against ε; bars: ± 1 standard error.")
    assert made.method == "The best settings were chosen on the data, which is not private."


def test_rows_of_the_board_come_from_the_package_where_the_folder_has_none(tmp_path, monkeypatch):
    better = {"algorithm": "dp-sgd", "private": True, "settings": "{}"}
    shipped = Store(tmp_path / "home", "full", "leaderboard")
    write(shipped, [row(0) | better, row(1) | better | {"timed": 1, "excess": 0.0},
                    row(2) | better | {"status": "defect"}, row(3, "a1a") | better])  # fmt: skip
    monkeypatch.setattr(adhoc.stored, "shipped", lambda: shipped.folder)
    rows = pd.DataFrame({"problem": ["synthetic"]})
    found = adhoc.beside(tmp_path / "results", rows)
    assert found[["problem", "algorithm", "experiment", "mean", "seeds"]].to_numpy().tolist() == [
        ["synthetic", "dp-sgd", "leaderboard", 0.1, 1]
    ]  # fmt: skip
    write(Store(tmp_path / "results", "full", "leaderboard"), [row(0) | better | {"excess": 0.7}])
    tried = [row(0) | {"excess": 0.4}, row(0) | {"key": "other", "excess": 0.2, "settings": "{}"}]
    write(Store(tmp_path / "results", "full", "second_order"), tried)
    found = adhoc.beside(tmp_path / "results", rows).sort_values("mean")
    assert found[["algorithm", "experiment", "mean"]].to_numpy().tolist() == [
        ["dp-gd", "second_order", 0.2], ["dp-sgd", "leaderboard", 0.7]
    ]  # fmt: skip
    assert adhoc.beside(tmp_path / "none", rows[:0]).empty


def test_curves_beyond_the_colours_are_grey_and_points_begin_anew():
    mine = pd.concat([means_of(("a1a", 1.0, "dp-gd", 0.1 + T)).assign(settings=f'{{"T":{T}}}') for T in range(7)])
    ended = mine.assign(key=mine["settings"])
    traces = pd.DataFrame({"key": ended["key"], "iteration": 1, "excess": 0.5})
    (curves,), (points,) = (made.figure.axes for made in (
        adhoc._curves(ended, traces), adhoc._against_epsilon(mine, means_of().assign(experiment=[]))
    ))  # fmt: skip
    assert [line.get_color() for line in curves.lines] == [*adhoc.LINES, adhoc.GREY]
    assert [one[0].get_color() for one in points.containers] == [*adhoc.LINES, adhoc.LINES[0]]


@pytest.mark.parametrize(
    ("problems", "size"), [("a", (5.2, 3.5)), ("ab", (7.2, 3.5)), ("abc", (10.8, 3.5)), ("abcd", (10.8, 6.3))]
)
def test_at_most_three_panels_stand_beside_one_another(problems, size):
    page = adhoc._panels(list(problems))
    assert tuple(page.canvas.get_size_inches()) == pytest.approx(size)
    assert [axis.get_visible() for axis in page.axes.flat].count(True) == len(problems)
