"""Scores against ε, with the interval over worlds, as a figure."""

from __future__ import annotations

from pathlib import Path

from dpbench import files
from dpbench.errors import UserError
from dpbench.estimators.plan import Plan

FORMATS = ("png", "pdf", "svg")
DRAWN = {"classes": ("AUC", "accuracy"), "numbers": ("R²", "kept")}


def check(path: Path) -> None:
    """UserError for a file of another kind, or one that cannot be written; its folder is made."""
    if path.suffix.removeprefix(".") not in FORMATS:
        raise UserError(f"figure: give a file that ends in .{', .'.join(FORMATS)}, got {path}")
    files.writable("figure", path)


def draw(plan: Plan, path: Path) -> None:
    """A panel per score, a line per method; UserError for a file that cannot be written."""
    from dpbench.study.style import figure_style, legend_below

    kind = path.suffix.removeprefix(".")
    epsilons = list(dict.fromkeys(one.epsilon for one in plan.forecasts))
    methods = list(dict.fromkeys(one.method for one in plan.forecasts))
    with figure_style() as pyplot:
        figure, panels = pyplot.subplots(1, 2, figsize=(7.0, 3.4), layout="constrained")
        for panel, score in zip(panels, DRAWN[plan.task], strict=True):
            for i, method in enumerate(methods):
                told = [one.interval(score) for one in plan.forecasts if one.method == method]
                middle, low, high = zip(*told, strict=True)
                # Apart from each other, so that no interval hides another's.
                places = [epsilon * 1.06 ** (i - (len(methods) - 1) / 2) for epsilon in epsilons]
                reach = [[m - a for m, a in zip(middle, low, strict=True)],
                         [b - m for m, b in zip(middle, high, strict=True)]]  # fmt: skip
                name = method + (" (default)" if i == 0 else "")
                panel.errorbar(places, middle, reach, marker="o", markersize=4, capsize=2, label=name, color=f"C{i}")
            for label, style in (("at best", "--"), ("one answer for all", ":")):
                if score != "kept":
                    panel.axhline(
                        plan.reference(label, score)[0], linestyle=style, color="grey", label=f"{label} (median)"
                    )
            panel.set(xscale="log", xlabel="ε", ylabel=score)
            panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            panel.minorticks_off()
        figure.suptitle(f"Predicted at n = {plan.rows:,}: median and nine tenths of {plan.worlds} simulated tables")
        legend_below(figure, panels)
        try:
            with files.replacing(path) as staged:
                figure.savefig(staged, format=kind, dpi=200)
        except OSError as error:
            raise UserError(f"figure: {path}: {error.strerror}") from None
