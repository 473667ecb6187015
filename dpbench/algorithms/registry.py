"""Finding an algorithm by name without importing all of them.

A name is a built-in (`dp-gd`), an alias that fixes some settings (`dp-newton-hess-clip`), an entry point of
the group `dpbench.algorithms`, or a file and class (`path/to/file.py:MyAlgorithm`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import itertools
import os
import re
from collections.abc import Mapping
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from stat import S_ISREG
from types import CodeType
from typing import Any, NamedTuple, NoReturn

from dpbench.algorithms.base import Algorithm
from dpbench.errors import UserError, nearest

BUILTIN = {
    "2opt": "dpbench.algorithms.nonconvex:TwoPhase",
    "2opt-b": "dpbench.algorithms.nonconvex:TwoPhaseMinibatch",
    "2opt-ls": "dpbench.algorithms.nonconvex:TwoPhaseLineSearch",
    "adassp": "dpbench.algorithms.sufficient_statistics:AdaSSP",
    "aop": "dpbench.algorithms.aop:ApproximateObjectivePerturbation",
    "bolt-on": "dpbench.algorithms.output_perturbation:BoltOn",
    "boosted-ssp": "dpbench.algorithms.sufficient_statistics:BoostedSSP",
    "cubic-newton": "dpbench.algorithms.newton_variants:CubicNewton",
    "damped-newton": "dpbench.algorithms.newton_variants:DampedNewton",
    "dp-accelerated-nesterov": "dpbench.algorithms.momentum:DPAcceleratedNesterov",
    "dp-adam": "dpbench.algorithms.gradient_descent:DPAdam",
    "dp-cd": "dpbench.algorithms.coordinate:DPCoordinateDescent",
    "dp-chebyshev": "dpbench.algorithms.sufficient_statistics:ChebyshevLogistic",
    "dp-frank-wolfe": "dpbench.algorithms.exponential_mechanism:FrankWolfe",
    "dp-gcd": "dpbench.algorithms.coordinate:DPGreedyCD",
    "dp-gd": "dpbench.algorithms.gradient_descent:DPGradientDescent",
    "dp-gd-average": "dpbench.algorithms.gradient_descent:AveragedGD",
    "dp-gd-oracle": "dpbench.algorithms.gradient_descent:DPGradientDescentOracle",
    "dp-gd-last": "dpbench.algorithms.gradient_descent:DPGDLastIterate",
    "dp-gd-laplace": "dpbench.algorithms.momentum:DPGDLaplace",
    "dp-gd-2ns": "dpbench.algorithms.nonconvex:DPGD2NS",
    "dp-hb": "dpbench.algorithms.momentum:DPHeavyBall",
    "dp-masg": "dpbench.algorithms.momentum:DPMultistage",
    "dp-masg-opt": "dpbench.algorithms.momentum:DPMultistageOptimised",
    "dp-mf": "dpbench.algorithms.stochastic:DPMatrixFactorisation",
    "dp-nag": "dpbench.algorithms.momentum:DPNesterov",
    "dp-nag-opt": "dpbench.algorithms.momentum:DPNesterovOptimised",
    "dp-newton": "dpbench.algorithms.newton:DPNewton",
    "dp-newton-general": "dpbench.algorithms.newton_variants:DPNewtonGeneral",
    "dp-newton-minibatch": "dpbench.algorithms.newton:DPNewtonMinibatch",
    "dp-sgd": "dpbench.algorithms.stochastic:DPSGD",
    "dp-sgd-1": "dpbench.algorithms.stochastic:DPSGDOne",
    "dp-tr": "dpbench.algorithms.nonconvex:DPTrustRegion",
    "dp-tr-b": "dpbench.algorithms.nonconvex:DPTrustRegionMinibatch",
    "o2nc": "dpbench.algorithms.o2nc:O2NC",
    "o2nc-naive": "dpbench.algorithms.o2nc:O2NCNaive",
    "o2nc-tree": "dpbench.algorithms.o2nc:O2NCTree",
    "tukey-em": "dpbench.algorithms.exponential_mechanism:TukeyEM",
    "objpert": "dpbench.algorithms.objective_perturbation:DPObjectivePerturbation",
    "objpert-pure": "dpbench.algorithms.objective_perturbation:PureObjectivePerturbation",
    "output-perturbation": "dpbench.algorithms.output_perturbation:OutputPerturbation",
    "phased-erm": "dpbench.algorithms.output_perturbation:PhasedERM",
    "opt": "dpbench.algorithms.nonconvex:Opt",
    "opt-b": "dpbench.algorithms.nonconvex:OptMinibatch",
    "opt-ls": "dpbench.algorithms.nonconvex:OptLineSearch",
}

# Jobs that measure and do not optimise: found by name, and not among `names`. `dpbench.run` enters its own here.
PROBES: dict[str, str] = {}

# What runs other methods: found by name, and not among `names`.
WRAPPERS = {"private-tuning": "dpbench.algorithms.private_tuning:PrivateTuning"}


class Alias(NamedTuple):
    """A name for an algorithm with some of its settings fixed."""

    algorithm: str
    settings: dict[str, Any]


ALIASES = {
    f"{method}-{curvature}-{modification}": Alias(method, {"curvature": curvature, "modification": modification})
    for method, curvature, modification in itertools.product(
        ("dp-newton", "dp-newton-minibatch"), ("hess", "qu"), ("clip", "add")
    )
} | {
    "dp-gcd-gs-s": Alias("dp-gcd", {"rule": "gs-s"}),
    "dp-gcd-gs-q": Alias("dp-gcd", {"rule": "gs-q"}),
    "dp-gcd-published": Alias("dp-gcd", {"selection": "published"}),
    "dp-sgd-1-sqrt2zc": Alias("dp-sgd-1", {"noise": "sqrt2zC"}),
    "dp-sgd-1-2zc": Alias("dp-sgd-1", {"noise": "2zC"}),
}


SERVED = "served:"  # stands before the reference of a method that is to run where no rows are
# "module:function" that makes one from a name or class and the text of its file. `dpbench.run` enters it here.
SERVE: list[str] = []
# Files and entry points whose code this process has imported: it may have changed whatever else runs here.
FOREIGN: list[str] = []
EXIT = os._exit


def _note(name: str) -> None:
    """Enter what is about to be imported into `FOREIGN`; from now on it ends this process only by an exception."""
    FOREIGN.append(name)
    process = os.getpid()

    def ended(status: int) -> NoReturn:
        if os.getpid() != process:  # a fork of it
            EXIT(status)
        raise SystemExit(status)

    # A command would end with this code, which may be 0, and without a word.
    os._exit = ended


def _serve(*code: Any) -> Algorithm:
    module, _, function = SERVE[0].partition(":")
    served: Algorithm = getattr(importlib.import_module(module), function)(*code)
    return served


def names(*, plugins: bool = True, wrappers: bool = False) -> list[str]:
    """Every registered name, sorted: built-in ones, aliases, installed `plugins`, and `wrappers` of other methods."""
    return sorted({*BUILTIN, *ALIASES, *(_plugins() if plugins else ()), *(WRAPPERS if wrappers else ())})


def taken(name: str) -> bool:
    """Whether dpbench's own has the name: the rows of a file's method would be told as those of the other."""
    return name in BUILTIN | ALIASES | PROBES | WRAPPERS


def not_ours(name: str, settings: Mapping[str, Any]) -> str | None:
    """The method behind `name` that is not dpbench's own, a wrapper's too; None where all are. Nothing is imported.

    settings: a wrapper's, whose `method` it runs.
    """
    if name.startswith(SERVED):
        return None  # its guarantee is the server's
    if name in WRAPPERS:
        return not_ours(str(settings.get("method", "dp-gd")), {})
    return None if name in names(plugins=False) or name in PROBES else name


def resolve(name: str) -> tuple[Algorithm, dict[str, Any]]:
    """The algorithm behind `name` and the settings the name fixes; UserError for an unknown name."""
    if not isinstance(name, str):
        raise UserError(f"algorithm must be a name or file.py:Class, got {name!r}")
    if name.startswith(SERVED):
        served = get(name)
        return served, dict(served.fixed)
    if name in ALIASES:
        alias = ALIASES[name]
        return get(alias.algorithm), dict(alias.settings)
    return get(name), {}


def get(name: str) -> Algorithm:
    """The algorithm called `name` (no alias), or defined at `file.py:Class`; UserError if there is none."""
    if name.startswith(SERVED):
        plain = name.removeprefix(SERVED)
        if ".py:" not in plain:
            return _serve(plain)
        file, class_name, digest = _located(plain)
        return _serve(class_name, _SOURCES[file, digest], file.name)
    return _from_file(*_located(name)) if ".py:" in name else _registered(name)


def reference(name: str) -> tuple[str, str]:
    """What a job calls the algorithm, and the hash of its source if that is a user's file ("" otherwise).

    Aliases give their target; a file's path is made absolute, so that any working directory finds it, and its hash
    goes into the job's key, so that editing the file makes its jobs new ones.
    """
    if name.startswith(SERVED):
        within, digest = reference(name.removeprefix(SERVED))
        # An alias stays: its own process resolves it.
        return SERVED + (within if digest else name.removeprefix(SERVED)), digest
    if ".py:" not in name:
        return ALIASES[name].algorithm if name in ALIASES else name, ""
    path, class_name, digest = _located(name)
    return f"{path}:{class_name}", digest


@functools.cache
def _registered(name: str) -> Algorithm:
    if name in (known := BUILTIN | PROBES | WRAPPERS):
        module, _, attribute = known[name].partition(":")
        return _checked(getattr(importlib.import_module(module), attribute), name)()
    plugins = _plugins()
    if name in plugins:
        _note(name)
        return _checked(plugins[name].load(), f"entry point {name}")()
    if name.endswith(".py"):
        raise UserError(f"algorithm {name}: name the class in it, {name}:Class")
    if ":" in name:
        raise UserError(f"algorithm {name}: a method of your own is given as path/to/file.py:Class")
    raise UserError(f"unknown algorithm {name!r}: {nearest(name, names())}")


def display_name(algorithm: str, settings: Any) -> str:
    """The alias that says most about (algorithm, settings), or the algorithm's own name."""
    for alias, (target, fixed) in ALIASES.items():
        if target == algorithm and all(getattr(settings, key) == value for key, value in fixed.items()):
            return alias
    return get(algorithm).name


@functools.cache
def _plugins() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group="dpbench.algorithms")}


def _located(name: str) -> tuple[Path, str, str]:
    """(absolute path, class, hash of the file) of `file.py:Class`."""
    path, _, class_name = name.rpartition(":")
    file = Path(path).resolve()
    try:
        state = file.stat()
    except OSError:
        state = None
    if state is None or not S_ISREG(state.st_mode):
        raise UserError(f"algorithm file {path} does not exist")
    return file, class_name, _digest(file, (state.st_ino, state.st_mtime_ns, state.st_size))


_SOURCES: dict[tuple[Path, str], bytes] = {}  # (file, its hash) → the text of it


@functools.lru_cache(maxsize=256)
def _digest(file: Path, state: tuple[int, int, int]) -> str:
    """The hash of a user's file in this state of the disk: read once, however often jobs ask for it."""
    text = file.read_bytes()
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    _SOURCES[file, digest] = text
    return digest


@functools.cache
def _from_file(file: Path, class_name: str, digest: str) -> Algorithm:
    method = _checked(_attribute(file, class_name, digest), f"{file}:{class_name}")()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", method.name or ""):  # folders and terminals see it as it is
        raise UserError(f"{file}:{class_name}: the name {method.name!a} is none; take letters, digits, - _ and . alone")
    if taken(method.name):
        raise UserError(f"{file}:{class_name}: the name {method.name} is taken; give the class another `name`")
    return method


def attribute(name: str) -> Any:
    """What "file.py:name" names, whatever it is; UserError if there is no such file or name."""
    return _attribute(*_located(name))


class _Hashed(SourceFileLoader):
    """Runs the text that was hashed: the file may have changed since."""

    text: bytes

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.text, self.path)


@functools.cache
def _attribute(file: Path, class_name: str, digest: str) -> Any:
    loader = _Hashed(file.stem, str(file))
    loader.text = _SOURCES[file, digest]
    spec = ModuleSpec(file.stem, loader, origin=str(file))
    spec.has_location = True  # its module has a __file__
    module = importlib.util.module_from_spec(spec)
    _note(str(file))
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may fail in any way; the line says where
        raise UserError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, class_name):
        own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
        raise UserError(f"{file} defines no {class_name!r}: {nearest(class_name, own)}")
    return getattr(module, class_name)


def _checked(cls: Any, where: str) -> type[Algorithm]:
    if not (isinstance(cls, type) and issubclass(cls, Algorithm)):
        raise UserError(f"{where} is not a subclass of dpbench.algorithms.base.Algorithm")
    if not getattr(cls, "name", None):
        raise UserError(f"{where}: set the class attribute `name`")
    return cls
