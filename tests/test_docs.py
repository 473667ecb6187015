"""Every block of code in the README and the documentation does what it says.

The blocks of a page run one after the other in one folder, which has the examples in it. python: one namespace for all;
a block whose first line is a comment with a file's name is that file. console: the commands print what stands there,
seconds masked. sh: commands of dpbench are of its form, and make knows its targets.
"""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from dpbench import datasets
from dpbench.cli import group, main
from dpbench.datasets import loading

ROOT = Path(__file__).resolve().parent.parent


def _name(page):
    return str(page.relative_to(ROOT))


PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ABRIDGED = re.compile(r"^print\(.*\)  # (.*?);? …$", re.MULTILINE)  # the first words that a line prints
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)|\{include\} (\S+)")


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_no_line_is_longer_than_132_characters(page):
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert [f"{number}: {line[:60]}…" for number, line in enumerate(lines, 1) if len(line) > 132] == []


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder with the examples, as a user has them beside a clone."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")  # the width that the pages show
    return tmp_path


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        found = [first or second for first, second in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))]
        found += re.findall(r"\{include\} (\S+)", page.read_text(encoding="utf-8"))
        there = [target for target in found if (page.parent / target).exists() or "generated/" in target]
        lost += [(page.name, target) for target in found if target not in there]
    assert not lost


def test_the_readme_is_one_screen_and_its_links():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def commands(text):
    """(words, expected output) of a console block; a backslash at the end of a line goes on."""
    for part in re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield shlex.split(command, comments=True), output.strip()


def cells(text):
    """The lines of a text as lists of cells, those in a column of seconds masked: they differ between machines."""
    rows, spans, names = [], [], []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("──"):
            spans = [found.span() for found in re.finditer("─+", line)]
            names = [lines[i - 1][start:end].strip() for start, end in spans]
        elif not line.strip():
            spans = []
        elif line.strip() == "…":
            rows.append(["…"])
        elif spans:
            row = [line[start:].strip() if end == spans[-1][1] else line[start:end].strip() for start, end in spans]
            rows.append(["…" if name == "seconds" else cell for name, cell in zip(names, row, strict=True)])
        elif not lines[i + 1 : i + 2] or not lines[i + 1].startswith("──"):
            rows.append(re.sub(r"\d+(\.\d+)? s\b", "… s", line).split())
    return rows


def run_console(text, capsys):
    for words, expected in commands(text):
        assert words[0] == "dpbench"
        with pytest.raises(SystemExit) as exit_:
            main(words[1:])
        out, err = capsys.readouterr()
        shown = iter(cells(out if exit_.value.code in (0, 1, None) else err))
        for row in cells(expected):  # in this order; "…" stands for lines left out
            assert row == ["…"] or row in shown, f"{shlex.join(words)}\nno line {row} in\n{out}\n{err}"


def parse_shell(text):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in text.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert set(words[1:]) <= targets
        elif words[:1] == ["dpbench"]:
            verb = group.get_command(None, words[1])
            assert verb is not None, line
            verb.make_parser(click.Context(verb)).parse_args(list(words[2:]))


def not_at_hand(text):
    named = set(re.findall(r"--dataset (\S+)", text)) | set(
        " ".join(re.findall(r"fetch ((?:\w+ )*\w+)\n", text)).split()
    )
    return [name for name in named if name in datasets.names() and not datasets.available(name)]


@pytest.mark.thorough_for(
    "README.md",
    "docs/guides/algorithm.md",
    "docs/guides/audit.md",
    "docs/guides/joining.md",
    "docs/guides/own_data.md",
    "docs/guides/planning.md",
    "docs/papers/*.md",
    "docs/start/researcher.md",
)
@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))], ids=_name)
def test_the_blocks_of_a_page_do_what_they_say(page, elsewhere, one_process, capsys, monkeypatch):
    run_blocks(page, elsewhere, capsys, monkeypatch)


def test_the_method_of_a_page_runs_as_it_says(elsewhere, capsys, monkeypatch):
    """All of the page but its audit, which serves the method in ten processes."""
    run_blocks(ROOT / "docs" / "guides" / "algorithm.md", elsewhere, capsys, monkeypatch, without="$ dpbench audit")


def run_blocks(page, elsewhere, capsys, monkeypatch, without=None):
    """Every block of a page in its order, apart from those with `without` in them."""
    known = dict(loading._known())  # a page that registers a data set does so for itself
    monkeypatch.setattr(loading, "_known", lambda: known)
    namespace, skipped = {"__name__": "__main__"}, []
    whole = page.read_text(encoding="utf-8")
    if "$ dpbench fetch" in whole:  # what it prints depends on what was prepared before: here, nothing
        monkeypatch.setenv("DPBENCH_DATA", str(elsewhere / "data"))
    for found in BLOCK.finditer(whole):
        language, text = found.groups()
        if without and without in text:
            continue
        if language == "python":
            file = re.match(r"# (\w+\.py)\n", text)
            if file:
                Path(file[1]).write_text(text, encoding="utf-8")
            else:
                above = "\n" * (whole[: found.start(2)].count("\n"))  # so that a traceback names the page's line
                exec(compile(above + text, str(page), "exec"), namespace)
                shown = capsys.readouterr().out
                assert [one for one in ABRIDGED.findall(text) if one not in shown] == []
        elif language == "console" and (missing := not_at_hand(text)):
            skipped += missing
        elif language == "console":
            run_console(text, capsys)
        elif language == "sh":
            parse_shell(text)
    if skipped:
        pytest.skip(f"data not at hand: {', '.join(skipped)}; all other blocks ran")


def test_every_related_work_has_a_year_and_a_source_and_every_erratum_its_commit_and_state():
    page = (ROOT / "docs" / "related_work.md").read_text(encoding="utf-8")
    works, errata = (
        [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")][
            2:
        ]
        for part in page.split("## Errata")
    )
    assert len(works) > 10
    assert [row[0] for row in works + errata if len(row) != 5 or not all(row)] == []
    assert [row[0] for row in works if not re.fullmatch(r"20\d\d", row[1]) or "](https://" not in row[4]] == []
    assert [row[:2] for row in errata if not re.search(r" at [0-9a-f]{7}$", row[0]) or "line" not in row[1]] == []
    assert {row[4] for row in errata} <= {"reported", "not yet"}
