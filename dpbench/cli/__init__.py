"""The command line: a verb per module, loaded when it is called."""

from __future__ import annotations

import gc
import importlib
import io
import re
import sys

import click

from dpbench.cli.options import VerbGroup
from dpbench.errors import UserError, out_of_memory, reason, system_error
from dpbench.version import DISTRIBUTION, __version__

# The argument of the API that a message begins with, as in "epsilon must be …".
ARGUMENT = re.compile(r"([a-z]\w*)(?= must |: | of )")
UNREAD = 141  # as of a program that SIGPIPE ends
# What click says, and what we say in its place: the option, what it takes, what was given.
CLICK = [
    (re.compile(r"Invalid value for '([^']+)': (.+) is not a valid integer( range)?\."),
     "{0} must be a whole number, got {1}"),
    (re.compile(r"Invalid value for '([^']+)': (.+) is not a valid float( range)?\."), "{0} must be a number, got {1}"),
    (re.compile(r"Invalid value for '([^']+)': (.+) is not one of (.+)\."), "{0} must be one of {2}; got {1}"),
    (re.compile(r"Got unexpected extra arguments? \((.+)\)"), "{command} does not take {0}; see {command} --help"),
    (re.compile(r"Missing option '([^']+)'\."), "{command} needs {0}; see {command} --help"),
]  # fmt: skip
# As --help shows them, those to know first; verb: its module, and what it does.
GROUPS = {
    "Verbs": {
        "reproduce": ("report", "Fetch all data, run all experiments at reduced size, report, and compare."),
        "fetch": ("run", "Download and prepare data sets."),
        "run": ("run", "Run an algorithm, or a paper's experiment."),
        "report": ("report", "Rebuild figures and tables from the results."),
        "status": ("run", "Show what is done, missing or failed."),
        "compare": ("compare", "Rank the private methods on data of your own."),
        "plan": ("own", "Predict what a private fit releases and how it scores."),
        "audit": ("audit", "Compute empirical lower bounds on an algorithm's ε."),
    },
    "Look up and compare": {
        "list": ("run", "Show algorithms, data sets, losses and experiments."),
        "diff": ("report", "Compare two sets of results."),
    },
    "Data and models of your own": {
        "schema": ("own", "Draft the public description of a table, or check a table by it."),
        "model": ("own", "Show and check a saved model's statement; write its card; export it."),
        "new": ("report", "Begin a package: a paper, an algorithm, a data set, a loss."),
    },
    "What others check": {
        "archive": ("board", "Put an experiment into one file for reviewers."),
        "verify": ("board", "Check an archive, and make a sample of its runs again."),
        "submit": ("board", "Make or check a submission to the leaderboard."),
        "board": ("board", "Add submissions to the leaderboard."),
    },
}
VERBS = {verb: module for verbs in GROUPS.values() for verb, (module, _) in verbs.items()}


START = """Three commands to start with:

  dpbench run --algo dp-gd --dataset synthetic --eps 1   # run a private method; needs no download
  dpbench compare --data FILE.csv --target COLUMN        # rank the private methods on a table of yours
  dpbench list experiments                               # the papers that are rebuilt here

All verbs: dpbench --help"""


class Verbs(VerbGroup):
    """A group that imports a verb's module only when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = importlib.import_module(f"dpbench.cli.{VERBS[name]}")
        command: click.Command = vars(module)["list_" if name == "list" else name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                # click measures each list by itself: a width for all keeps the sections in line.
                formatter.write_dl([(f"{verb:<{max(map(len, VERBS))}}", text) for verb, (_, text) in verbs.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=f"dpbench {__version__} ({DISTRIBUTION})")
def group() -> None:
    """Which differentially private optimiser wins at which ε, and do the claims of five papers survive a re-run?

    Every figure is rebuilt from raw results, and a second accountant recomputes every ε. Exit codes: 0 all well,
    1 some runs failed or something is wrong, 2 a mistake in the call, 3 something could not be checked,
    130 interrupted, 141 the reader has gone.
    """


def main(args: list[str] | None = None) -> None:
    """Entry point: every mistake of the user is one line on stderr and exit code 2."""
    # A plan has 200,000 jobs and no cycle among them, which the collector would walk again and again.
    gc.set_threshold(100_000, 50, 50)
    out = sys.stdout
    for stream in (out, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # latin-1 has no ε
            stream.reconfigure(errors="replace")
    try:
        words = sys.argv[1:] if args is None else args
        code = group.main(args, prog_name="dpbench", standalone_mode=False, obj=words)  # as they were typed
    except UserError as error:
        _fail(_as_typed(str(error), words))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx.parent else START)
        code = 2
    except click.ClickException as error:
        _fail(_plain(error))
    except (KeyboardInterrupt, click.Abort) as error:
        # click takes EOFError for Ctrl-D, but here it is a file or a pipe that ended too early.
        if isinstance(error.__cause__, EOFError):
            raise error.__cause__ from None
        click.echo("interrupted: the same command repeats none of the runs that were kept", err=True)
        code = 130
    except SystemExit as error:
        # click sets another stream and ends where the reader has gone, as in `dpbench audit … | head`: a verdict that
        # nobody read is no pass.
        if sys.stdout is out:
            _fail(f"code that is not dpbench's ended the program, with {error.code!r}")
        code = UNREAD
    except Exception as error:
        system = system_error(error)
        if out_of_memory(error):
            _fail("out of memory; take fewer rows, fewer processes (--jobs 1) or a machine with more of it")
        if system is None:
            raise
        _fail(f"{system.filename}: {reason(system)}" if system.filename else reason(system))
    sys.exit(code if isinstance(code, int) else 0)


def _as_typed(message: str, args: list[str]) -> str:
    """`message`, with the option of the verb in place of the argument of the API that it begins with, if it does."""
    command: click.Command = group
    for word in args:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), str(word)) or command
    options = [each for each in command.params if isinstance(each, click.Option)]
    typed = {each.name: each.opts[0] for each in options}
    typed |= {option.lstrip("-").replace("-", "_"): option for each in options for option in each.opts}
    match = ARGUMENT.match(message)
    return typed[match[1]] + message[match.end() :] if match and match[1] in typed else message


def _plain(error: click.ClickException) -> str:
    """What click says of a mistake, in a user's words: the option, what it takes, what was given."""
    message = error.format_message()
    for pattern, told in CLICK:
        if match := pattern.fullmatch(message):
            asked = getattr(getattr(error, "ctx", None), "command_path", "dpbench")
            return told.format(*match.groups(), command=asked)
    return message


def _fail(message: str) -> None:
    click.echo("error: " + " ".join(message.split()), err=True)
    sys.exit(2)
