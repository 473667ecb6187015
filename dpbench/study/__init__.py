"""The kit below the papers: what every experiment is made with. It knows no paper.

A paper is a package under `experiments/`: a `grid.toml` (see `study.grid` for the format), what the paper published
(`published.toml`), a `words.md` with every sentence, and modules of short functions:

    EXPERIMENT = PAPER.experiment(figures, tables, claims)  # title, citation, short and about: words.md

- `paper`: `PAPER = Paper(__name__)`; `@PAPER.artefact("fig2")`, `@PAPER.claim("ten-times")` or `@PAPER.erratum("…")`
  over functions that give numbers; `Ends`, means by named keys; `drawn_lines`, panels of lines with their gaps.
- `claims`: what these declare; `each` for several of one function. A claim returns `Verdict.of(held, numbers)`, or
  yields several with a `case`; `Verdict(OPEN, …)` where the rows do not decide, `Verdict(NOT_TESTABLE, …)` where it
  could not have come out otherwise; it raises `NotEnough(what)` where rows are missing.
- `context`: claims and artefacts are functions of a `Context`: `context.rows("fig2")`, `.traces(runs)`,
  `.problems("fig2")`, and `.command("fig2")`, the command that fills its gaps.
- `statistics`: `means` (± s.e. over seeds), `excess` (infinite where diverged), `plus_minus`, `span`, `listed`.
- `panels`: `Panels`, a figure whose panels without rows show the gap; `curve` and `band`.
- `output`: `Figure` and `Table`, saved in every format; `style`: one look per algorithm.
- `value_verdict`: `PublishedValue`s, their classes and survival (`judge`); `laws`: the statistics behind them;
  `printed`: rounding on decimal strings; `headline`: the counts.
- `tuning`: best settings as the papers choose them.
"""
