"""Saving figures and tables, each in every format, the same bytes from the same rows."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from dpbench import files, frames
from dpbench.errors import UserError, reason, system_error
from dpbench.study.style import tick_alike

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


WORDS = 40  # of a caption, at most
Record: TypeAlias = Mapping[str, Any]
Words: TypeAlias = str | Callable[[Record], str]  # "{failed} of {runs}", or what a function makes of a record


class _Files:
    """What can be saved."""

    def _write(self, stem: Path, title: str) -> list[Path]:
        """Make the files of every format beside a stem."""
        raise NotImplementedError

    def save(self, stem: Path, title: str) -> list[Path]:
        """Write every format, all of them or none; UserError if the folder cannot be written."""
        folder = stem.parent
        try:
            with files.staging(stem) as stage:
                written = self._write(stage / stem.name, title)
                for file in written:
                    os.replace(file, folder / file.name)
        except Exception as error:  # a full disk makes matplotlib raise errors of other kinds over the system's
            system = system_error(error)
            if system is None:
                raise
            raise UserError(f"cannot write to {folder}: {reason(system)}") from error
        return [folder / file.name for file in written]


@dataclass
class Figure(_Files):
    """A drawn figure and the data it draws.

    gaps: what is missing, a line each, with the command that makes it. caption: what is drawn and what to see, in at
    most `WORDS` words. method: how it was made; the pages fold it.
    finding: the result as a sentence, where the rows show one: it becomes the title.
    """

    figure: MatplotlibFigure
    data: pd.DataFrame
    gaps: list[str] = field(default_factory=list)
    caption: str = ""
    method: str = ""
    finding: str = ""

    def _write(self, stem: Path, title: str) -> list[Path]:
        tick_alike(self.figure)
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine(None)  # one layout, of which all formats are
        # A date in a file would give equal rows other bytes.
        for suffix, metadata in (
            (".pdf", {"CreationDate": None, "ModDate": None}),
            (".svg", {"Date": None}),
            (".png", {}),
        ):
            self.figure.savefig(stem.with_suffix(suffix), metadata=metadata)
        self.data.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.8g")
        text = f"# {title}\n\n![{title}]({stem.name}.png)\n\n{self.caption}\n{_method(self.method)}{_gaps(self.gaps)}"
        stem.with_suffix(".md").write_text(text)
        return [stem.with_suffix(s) for s in (".pdf", ".svg", ".png", ".csv", ".md")]


@dataclass
class Table(_Files):
    """A table of ready strings, and the plain data behind it where that is more than the strings; else as `Figure`."""

    frame: pd.DataFrame
    data: pd.DataFrame | None = None
    gaps: list[str] = field(default_factory=list)
    caption: str = ""
    method: str = ""
    finding: str = ""

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        columns: Mapping[str, Words],
        gaps: Iterable[str] = (),
        *,
        unsaved: Collection[str] = (),
    ) -> Table:
        """A row per record: what the cells say follows from the data that are saved beside them.

        Args:
            records: column of the data → value.
            columns: heading → the cell, of a record.
            gaps: as of the table.
            unsaved: columns that only the words need.
        """
        frame = pd.DataFrame([[_said(one, words) for words in columns.values()] for one in records], columns=[*columns])
        data = pd.DataFrame(records).drop(columns=[*unsaved] if records else [])
        return cls(frame, data, [*gaps])

    @classmethod
    def crossed(
        cls,
        table: pd.DataFrame,
        rows: Iterable[Record],
        lead: Mapping[str, Words],
        across: Mapping[str, Record],
        cell: Words,
        *,
        trail: Mapping[str, Words] | None = None,
        missing: Callable[[Record], str] | None = None,
        whole: bool = False,
        data: pd.DataFrame | None = None,
    ) -> Table:
        """A line per key of `rows`, a column per key of `across`, and in a cell the words of the row that has both.

        Args:
            table: a row per cell; one that is not there is "–".
            rows: what the rows of one line have in common, column → value.
            lead, trail: headings before and after → words of the line's key.
            across: heading → what the rows of one column have in common.
            cell: the words of a row.
            missing: the gap of a cell without a row, "" where no grid asks for it; with `whole`, of a line without any.
            data: what is saved beside it; the cells' own words by default.
        """
        names = list(dict.fromkeys(name for key in across.values() for name in key))
        lines, gaps = [], list[str]()
        for key in rows:
            own = table[(table[[*key]] == pd.Series(key)).all(axis=1)] if len(table) else table
            own_cells = {tuple(one[name] for name in names): _said(one, cell) for one in frames.mappings(own)}
            cells = [own_cells.get(tuple(at[name] for name in names), "–") for at in across.values()]
            before, after = ([_said(key, words) for words in each.values()] for each in (lead, trail or {}))
            lines.append([*before, *cells, *after])
            lost = [{**key, **at} for at, text in zip(across.values(), cells, strict=True) if text == "–"]
            if whole:
                lost = [] if own_cells else [dict(key)]
            gaps += filter(None, map(missing, lost)) if missing else []
        return cls(pd.DataFrame(lines, columns=[*lead, *across, *(trail or {})]), data, gaps)

    def _write(self, stem: Path, title: str) -> list[Path]:
        text = f"# {title}\n\n{markdown(self.frame)}\n{self.caption}\n{_method(self.method)}{_gaps(self.gaps)}"
        stem.with_suffix(".md").write_text(text)
        stem.with_suffix(".tex").write_text(latex(self.frame, self.caption, self.method))
        data = self.frame if self.data is None else self.data
        data.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.8g")
        return [stem.with_suffix(s) for s in (".md", ".tex", ".csv")]


def _said(record: Record, words: Words) -> str:
    return words.format_map(record) if isinstance(words, str) else words(record)


def _method(text: str) -> str:
    return f"\n**Method.** {text}\n" if text else ""


def _gaps(gaps: list[str]) -> str:
    return "".join(f"\n- gap: {line}" for line in gaps) + ("\n" if gaps else "")


def markdown(frame: pd.DataFrame) -> str:
    """A pipe table whose columns also line up in plain text."""
    cells = [[str(c) for c in frame.columns], *[[str(v) for v in row] for row in frame.to_numpy()]]
    cells = [[text.replace("|", "\\|").replace("\n", "<br>") for text in row] for row in cells]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(frame.columns))]
    lines = ["| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines) + "\n"


# What LaTeX reads as a command, and the letters that its fonts lack.
LATEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "^": r"\^{}", "~": r"\textasciitilde{}",
         "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
         "ε": r"$\varepsilon$", "δ": r"$\delta$", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$",
         "λ": r"$\lambda$", "β": r"$\beta$", "γ": r"$\gamma$", "θ": r"$\theta$", "ρ": r"$\rho$", "−": "--", "–": "--",
         "σ": r"$\sigma$", "‖": r"$\|$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "∞": r"$\infty$", "F̂": r"$\hat F$",
         "∇": r"$\nabla$", "√": r"$\surd$", "⌊": r"$\lfloor$", "⌋": r"$\rfloor$", "∝": r"$\propto$", "·": r"$\cdot$",
         "Õ": r"\~O", "α": r"$\alpha$", "Δ": r"$\Delta$", "η": r"$\eta$", "μ": r"$\mu$", "κ": r"$\kappa$",
         "Λ": r"$\Lambda$", "Σ": r"$\Sigma$", "Φ": r"$\Phi$", "ℓ": r"$\ell$", "→": r"$\to$", "≈": r"$\approx$",
         "∈": r"$\in$", "…": r"\dots{}", "—": "---", "’": "'", "“": "``", "”": "''"}  # fmt: skip
RAISED, LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ", "₀₁₂₃₄₅₆₇₈₉₊₋"
_SYMBOLS = re.compile("|".join(map(re.escape, LATEX)) + f"|[{RAISED}]+|[{LOWERED}]+")


def escaped(text: str) -> str:
    """Text as pdflatex takes it, whatever is in it; a character that it has no way to print becomes "?".

    >>> print(escaped("5 % of a_b at ε ≤ n⁻², $x$"))
    5 \\% of a\\_b at $\\varepsilon$ $\\le$ n$^{-2}$, \\$x\\$
    """

    def command(match: re.Match[str]) -> str:
        symbol = match[0]
        if symbol in LATEX:
            return LATEX[symbol]
        plain = unicodedata.normalize("NFKD", symbol).replace("−", "-")
        return f"$^{{{plain}}}$" if symbol[0] in RAISED else f"$_{{{plain}}}$"

    lines = _SYMBOLS.sub(command, text).split("\n")
    return r"\\".join("".join(map(_printable, line)) for line in lines)


def _printable(letter: str) -> str:
    """Letters of Latin alphabets as they are; of others the plain letter that they are made of, or "?"."""
    if " " <= letter <= "~" or "\u00c0" <= letter <= "\u017f":
        return letter
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode().strip() or "?"


def latex(frame: pd.DataFrame, caption: str, method: str = "") -> str:
    """A booktabs table that compiles with pdflatex; the method is a small paragraph below the caption."""

    def clean(value: object) -> str:
        text = escaped(str(value))
        return rf"\shortstack[l]{{{text}}}" if "\n" in str(value) else text

    rows = [" & ".join(clean(v) for v in row) + r" \\" for row in frame.to_numpy()]
    head = " & ".join(clean(c) for c in frame.columns) + r" \\"
    body = "\n".join([r"\toprule", head, r"\midrule", *rows, r"\bottomrule"])
    columns = "l" * len(frame.columns)
    below = f"\\par\\footnotesize {clean(method)}\n" if method else ""
    return (
        "\\begin{table}\n\\centering\n"
        f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n"
        f"\\caption{{{clean(caption)}}}\n{below}\\end{{table}}\n"
    )
