"""The options that verbs share: one name, one meaning, declared once. Each has the name of its argument in the API.

`--results` is the folder that rows are read from (and that `run` adds to), `--out` is what a verb writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

import dpbench
from dpbench.errors import UserError, nearest, positive

# What a shell completes: eval "$(_DPBENCH_COMPLETE=bash_source dpbench)" in ~/.bashrc; zsh_source and fish_source too
Complete = Callable[[click.Context, click.Parameter, str], list[str]]
Verb = TypeVar("Verb", bound=Callable[..., Any])
Option = Callable[[Verb], Verb]
COMMANDLINE = click.core.ParameterSource.COMMANDLINE


def _completing(names: Callable[[], Iterable[str]]) -> Complete:
    return lambda context, parameter, begun: [name for name in names() if name.startswith(begun)]


def _experiments() -> Iterable[str]:
    """The experiments, and the artefacts of each."""
    found = dpbench.listing("experiments")
    for name, artefacts in zip(found["experiment"], found["artefacts"], strict=True):
        yield from (name, *(f"{name}/{artefact}" for artefact in artefacts.split(", ")))


ALGORITHMS = _completing(lambda: map(str, dpbench.listing("algorithms")["algorithm"]))
DATASETS = _completing(lambda: map(str, dpbench.listing("datasets")["data_set"]))
EXPERIMENTS = _completing(_experiments)


def _is_positive(text: str) -> bool:
    try:
        return positive("", text) > 0  # type: ignore[arg-type]  # as of the command line
    except UserError:
        return False


def _epsilons(context: click.Context, parameter: click.Parameter, values: Iterable[Any]) -> list[float]:
    """The ε > 0 that were given; UserError for any other, which says how to give several."""
    numbers = []
    for value in values:
        try:
            numbers.append(positive("--eps", value))
        except UserError as error:
            parts = str(value).replace(",", " ").split()
            point = str(value).replace(",", ".", 1)
            fixes = [f"with a decimal point: --eps {point}"] * (_is_positive(point) and "," in str(value))
            several = len(parts) > 1 and all(map(_is_positive, parts))
            fixes += [f"for several, repeat it: {' '.join(f'--eps {each}' for each in parts)}"] * several
            raise UserError("; ".join([str(error), *fixes])) from None
    return numbers


def option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Option[Any]:
    """An option whose default is shown, where it has one; of whole numbers where its metavar is N."""
    shown = more.get("default") not in (None, "", [1.0]) and not more.get("is_flag") and not more.get("multiple")
    kind = {"type": int} if metavar == "N" else {}
    return click.option(*names, help=help, metavar=metavar, show_default=shown, **(kind | more))


def flag(*names: str, help: str) -> Option[Any]:
    """An option without a value."""
    return option(*names, help=help, is_flag=True)


def several(*names: str, help: str, **more: Any) -> Option[Any]:
    """An option that may be given more than once."""
    return option(*names, help=f"{help}; may be repeated.", multiple=True, **more)


def profile(help: str, default: str | None = "full", metavar: str = "quick|full") -> Option[Any]:
    """--profile, with what it means to the verb."""
    return option("--profile", metavar=metavar, default=default, help=help)


def out(metavar: str, help: str, **more: Any) -> Option[Any]:
    """--out, with what the verb writes there."""
    return option("--out", metavar=metavar, help=help, **more)


def experiment(help: str, name: str = "reference", metavar: str = "NAME[/ARTEFACT]") -> Option[Any]:
    """--experiment, with what it means to the verb."""
    return option("--experiment", name, metavar=metavar, help=help, shell_complete=EXPERIMENTS)


class VerbGroup(click.Group):
    """A group that answers an unknown verb with the nearest, and refuses to take the last of several values."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            raise UserError(f"no verb {args[0]!r}: {nearest(args[0], known)}")
        name, command, rest = super().resolve_command(ctx, args)
        for each in command.params if command else ():
            times = sum(word.partition("=")[0] in each.opts for word in rest)
            if isinstance(each, click.Option) and not each.multiple and not each.is_flag and times > 1:
                raise UserError(f"{each.opts[0]}: given {times} times, but it takes one value; run the verb for each")
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click cuts a sentence that is longer than the line.
        with formatter.section("Commands"):
            commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
            formatter.write_dl([(name, one.get_short_help_str(1000)) for name, one in commands.items() if one])


def typed(*names: str) -> list[str]:
    """The options that the user has given, of those of these arguments."""
    context = click.get_current_context()
    given = [each for each in context.command.params if each.name in names]
    # A default tells nothing of what the user wants, so it never clashes with another option.
    return [each.opts[0] for each in given if context.get_parameter_source(str(each.name)) is COMMANDLINE]


EPS = several(
    "--eps",
    "epsilon",
    type=click.UNPROCESSED,
    callback=_epsilons,
    default=[1.0],
    metavar="ε",
    help="ε of the guarantee, 1 by default",
)
DELTA = option("--delta", metavar="δ", help="A number, n^-2 or n^-1; by default the method's own rule.")
RESULTS = option("--results", default="results", metavar="DIR", help="Folder of the results.")
JOBS = option("--jobs", metavar="N", help="Worker processes; all cores by default.")
SEEDS = option("--seeds", metavar="N", default=5, help="How many seeds.")
SEED = option("--seed", metavar="N", default=0, help="Seed of all random numbers.")
DEBUG = flag("--debug", help="Show the traceback of a method that raised.")
LIKE = option("--like", metavar="FILE", help="Public or older rows with the same columns, to simulate from.")
SHARE = several("--share", metavar="CLASS=SHARE", help="Your guess of a class's share of the rows")
SIGNAL = option("--signal", type=float, metavar="SCORE", help="Your guess of the AUC (or R²) possible without privacy.")
WORLDS = option("--worlds", default=40, metavar="N", help="How many tables to simulate.")


def parse_shares(pairs: Iterable[str]) -> dict[str, float]:
    """["yes=0.03"] → {"yes": 0.03}; UserError for anything else."""
    try:
        return {
            name: float(value) for name, value in parse_pairs("--share", "CLASS=SHARE", pairs, str.rpartition).items()
        }
    except ValueError:
        raise UserError("--share takes CLASS=SHARE, a share of the rows, as in yes=0.03") from None


def parse_pairs(
    option: str, words: str, pairs: Iterable[str], cut: Callable[[str, str], tuple[str, ...]] = str.partition
) -> dict[str, str]:
    """["T=100", "step=4"] → {"T": "100", "step": "4"}; UserError for anything else."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, _, value = cut(pair, "=")
        if not (key and value):
            raise UserError(f"{option} takes {words}, got {pair!r}")
        if key in values:
            raise UserError(f"{option} {key} is given twice")
        values[key] = value
    return values
