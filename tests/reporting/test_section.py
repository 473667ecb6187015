"""The section of a paper: all that was drawn and judged, in LaTeX that compiles whatever the texts hold."""

import json
import re
import shutil
import subprocess

import pytest

from dpbench.reporting import manifest, section
from dpbench.study.output import escaped

HOSTILE = r"100 % of a_b & c # d ^ e ~ f $x$ \input{/etc/passwd} { } < > | ∇ ε ≤ n⁻² ‖w‖₂ F̂ łódź 漢 \"q\""
DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{graphicx,booktabs,longtable}
\newcommand{\dpbenchfolder}{.}
\begin{document}
\input{\dpbenchfolder/section}
\end{document}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as `report` leaves it, every text of it hostile."""
    table = {"name": "table1", "title": f"Table 1: {HOSTILE}", "kind": "table", "caption": HOSTILE, "method": "",
             "gaps": [], "columns": [HOSTILE, "b"], "rows": [[HOSTILE, "1"], ["two\nlines", "2"]]}  # fmt: skip
    claim = {"text": HOSTILE, "case": "as published", "verdict": "held", "numbers": HOSTILE, "place": ""}
    told = {
        "experiment": "mine", "title": HOSTILE, "profile": "full", "runs": 7, "statuses": {"done": 7},
        "code_versions": ["0.1"], "relations": ["replace-one"], "checked_by": ["dp_accounting"],
        "artefacts": [
            table,
            {"name": "scorecard", "title": "Scorecard", "kind": "table", "caption": "", "records": [claim]},
            {"name": "published_values", "title": "", "kind": "table", "caption": "Of 3 values, 2 match."},
        ],
    }  # fmt: skip
    (tmp_path / manifest.FILE).write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setattr(section, "cite", lambda name: f"@misc{{dpbench,\n}}\n@misc{{{name}2026,\n}}\n")
    return tmp_path


def test_it_has_tables_claims_and_the_count_of_published_values(folder):
    written = section.write(folder)
    assert [path.name for path in written] == ["section.tex", "references.bib"]
    text = written[0].read_text(encoding="utf-8")
    assert r"\cite{dpbench,mine2026}" in text
    assert r"\label{tab:mine:table1}" in text
    assert "1 held" in text
    assert "Of 3 values, 2 match." in text
    assert "7 runs (7 done) of the full profile, by 0.1" in text


def test_no_text_reaches_latex_as_a_command(folder):
    text = section.write(folder)[0].read_text(encoding="utf-8")
    assert r"\textbackslash{}input\{/etc/passwd\}" in text
    assert not re.search(r"\\input\{/etc", text)
    assert "漢" not in text


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex")
def test_it_compiles(folder):
    section.write(folder)
    (folder / "paper.tex").write_text(DOCUMENT)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-1500:]


def test_every_ascii_letter_of_a_text_is_kept_or_a_command():
    for letter in map(chr, range(32, 127)):
        told = escaped(letter)
        assert told == letter or told.startswith(("\\", "$", "''")), told
