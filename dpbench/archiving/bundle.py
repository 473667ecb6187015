"""An experiment in one file, for reviewers: its rows, its code and grid, the environment, a digest; no raw data.

A zip file, read without unpacking or executing anything (`zipped`). `verifying` is the reader's side.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import math
import os
import re
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import msgspec

from dpbench import experiments, frames
from dpbench.errors import UserError, counted
from dpbench.run.execute import code_version
from dpbench.run.jobs import identity
from dpbench.run.results import Store
from dpbench.run.row import PARSED, RUNS, TRACES, Row
from dpbench.study.experiment import Experiment
from dpbench.study.plan import plan
from dpbench.submitting import zipped
from dpbench.submitting.archive import HEX, TEXT, worded

FORMAT = 2
MB = 1 << 20
LARGEST = 256 * MB  # the file
LIMITS = {"manifest.json": MB, "rows.jsonl": 512 * MB, "traces.jsonl": 512 * MB, "lock.txt": MB}
LONGEST_LINE, MOST_ROWS = MB, 1_000_000  # of rows.jsonl
NEEDED = ("manifest.json", "rows.jsonl", "lock.txt")
CODE = "code/"
# Below the folder, whatever joins the two: an empty step would make the rest of the name a path from the root.
CODE_NAME = re.compile(r"(?=.{6,205}$)code(/\.?[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+")
CODE_FILE = 1 * MB  # larger files of a package are data, and stay out
IDENTIFIER = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the archive is of. distribution: the package that has the experiment, with its version. planned: how many
    runs its grid asks for; data: data set's digest by problem; sha256: of the other members, by name."""

    format: int
    experiment: IDENTIFIER
    title: TEXT
    profile: IDENTIFIER
    distribution: TEXT
    code_version: TEXT
    code_versions: list[TEXT]
    environments: list[TEXT]
    rows: int
    planned: int
    data: dict[Annotated[str, msgspec.Meta(max_length=200)], list[TEXT]]
    sha256: dict[str, HEX]


class Traced(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The recorded iterations of one run, by column; a number that is not finite is None."""

    key: str
    iteration: list[int]
    passes: list[float | None]
    seconds: list[float | None]
    excess: list[float | None]


class Bundle(NamedTuple):
    """An archive, read.

    digest: of its manifest, and so of all. rows: with the `identity` that their keys hash. traces: by key.
    """

    manifest: Manifest
    digest: str
    rows: list[tuple[dict[str, Any], Row]]
    traces: dict[str, Traced]
    code: dict[str, bytes]


class Made(NamedTuple):
    """digest: what a paper can print; left_out: files of the package that are too large to be code."""

    path: Path
    digest: str
    rows: int
    planned: int
    left_out: list[str]


def archive(
    experiment: str,
    profile: str = "full",
    *,
    results: str | os.PathLike[str] = "results",
    out: str | os.PathLike[str] | None = None,
) -> Made:
    """Put an experiment into one file for reviewers: rows, traces, code, grid, environment and lock; no raw data.

    Args:
        experiment: by name.
        profile: whose rows.
        results: where the rows lie.
        out: the file to write; NAME-PROFILE.zip by default.

    Returns:
        The file, its digest (of its manifest, which has the digests of all members), how many rows it has of how many
        its grid asks for, and the files of the package that were left out as too large for code.

    Raises:
        UserError: for an unknown experiment or profile, one without rows, or a file that cannot be written.
    """
    one = experiments.get(experiment)
    store = Store(results, profile, one.name)
    planned = plan(one.blocks(profile), store)
    runs, jobs = store.runs(), planned.by_key
    runs = runs[runs["key"].isin(jobs)].sort_values("key")
    if runs.empty:
        raise UserError(f"no rows in {store.folder}; run: dpbench run --experiment {one.name} --profile {profile}")
    lines = []
    for record in frames.mappings(runs.assign(experiment=one.name)):  # older rows may have an older name of it
        lines.append(msgspec.json.encode({"identity": identity(jobs[record["key"]]), **_plain(record)}))
    code, left_out = files_of(one)
    members = {"rows.jsonl": b"\n".join(lines) + b"\n", "lock.txt": _lock().encode()}
    if traces := _traces(store, runs["key"]):
        members["traces.jsonl"] = traces
    members |= {f"{CODE}{name}": content for name, content in {**code, **_metadata(one)}.items()}
    data = runs.dropna(subset=["data_sha256"]).groupby("problem")["data_sha256"].unique()
    manifest = Manifest(
        format=FORMAT,
        experiment=one.name,
        title=worded(one.title),
        profile=profile,
        distribution=experiments.distribution(one.name),
        code_version=worded(code_version()),
        code_versions=sorted({worded(each) for each in runs["code_version"].dropna()}),
        environments=sorted({worded(each) for each in runs["environment"].dropna()}),
        rows=len(runs),
        planned=len(jobs),
        data={name: sorted(map(worded, data[name])) for name in sorted(data.index)},
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())},
    )
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    target = Path(out or f"{one.name}-{profile}.zip")
    zipped.write(target, {"manifest.json": encoded, **members})
    return Made(target, digest_of(encoded), len(runs), len(jobs), left_out)


def digest_of(manifest: bytes) -> str:
    """The digest of an archive: of its manifest, which has those of all other members."""
    return hashlib.sha256(manifest).hexdigest()


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON has it: without what is not known, and infinity in a list as null."""
    found = Row.read(record).record()
    if found["values"] is not None:
        found["values"] = [value if math.isfinite(value) else None for value in map(float, found["values"])]
    whole = {name for name, kind in RUNS.items() if kind == "int64"}  # a frame has floats where some are missing
    found = {name: int(value) if name in whole and value is not None else value for name, value in found.items()}
    return {name: value for name, value in found.items() if value is not None and value not in (math.inf, -math.inf)}


def _traces(store: Store, keys: Any) -> bytes:
    """The traces of these runs, a line of JSON for each run; b"" where there are none."""
    found = store.traces(keys).sort_values(["key", "iteration"])
    lines = []
    for key, points in found.groupby("key"):
        columns = {name: points[name].tolist() for name in TRACES if name != "key"}
        lines.append(msgspec.json.encode({"key": key} | columns) + b"\n")  # what is not finite is null
    return b"".join(lines)


def files_of(experiment: Experiment) -> tuple[dict[str, bytes], list[str]]:
    """The files of an experiment's package by their place on the import path, and those that are too large for code.

    Of a package outside dpbench all of it: the experiment may import the rest.
    """
    package = experiment.package if experiment.package.startswith("dpbench.") else experiment.package.partition(".")[0]
    root = Path(str(resources.files(package)))
    found, left_out = {}, []
    for path in sorted(root.rglob("*")):
        name = "/".join([*package.split("."), *path.relative_to(root).parts])
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts or path.suffix == ".pyc":
            continue
        if path.stat().st_size > CODE_FILE or not CODE_NAME.fullmatch(f"{CODE}{name}") or ".." in name:
            left_out.append(name)
        else:
            found[name] = path.read_bytes()
    return found, left_out


def _metadata(experiment: Experiment) -> dict[str, bytes]:
    """What makes the code's entry points be found where it lies: the metadata of its distribution."""
    distribution = experiments.distribution_of(experiment.name)
    if distribution is None:
        return {}
    name = re.sub(r"[^A-Za-z0-9.]+", "_", distribution.metadata["Name"])
    folder = f"{name}-{distribution.version}.dist-info"
    kept = {each: distribution.read_text(each) for each in ("METADATA", "entry_points.txt")}
    return {f"{folder}/{each}": text.encode() for each, text in kept.items() if text}


def _lock() -> str:
    """Every distribution that is installed here, a line each."""
    found = {f"{one.metadata['Name']}=={one.version}" for one in importlib.metadata.distributions()}
    return "".join(f"{line}\n" for line in sorted(found, key=str.lower))


def read(path: str | os.PathLike[str]) -> Bundle:
    """The content of an archive; UserError, in one line that names it, for one that is not as it should be."""
    try:
        return _decoded(zipped.read(Path(path), _limit, LARGEST, NEEDED))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # a stranger's bytes: whatever else happens is one line too
        raise UserError(f"{path}: cannot be read as an archive ({type(error).__name__})") from None


def _limit(name: str) -> int:
    if name in LIMITS:
        return LIMITS[name]
    if not CODE_NAME.fullmatch(name):
        raise UserError(f"member {name!r} has no place in it")
    return CODE_FILE


def _decoded(members: dict[str, bytes]) -> Bundle:
    manifest = _as("manifest.json", members["manifest.json"], Manifest)
    if manifest.format != FORMAT:
        raise UserError(f"format {manifest.format}; this dpbench reads {FORMAT}")
    content = {name: each for name, each in members.items() if name != "manifest.json"}
    if both := sorted(content.keys() & {str(folder) for name in content for folder in PurePosixPath(name).parents}):
        raise UserError(f"member {both[0]!r} is a file, and a folder of another member")
    if content.keys() != manifest.sha256.keys():
        odd = sorted(content.keys() ^ manifest.sha256.keys())[0]
        raise UserError(f"{odd}: the manifest and the members are not of each other")
    for name, each in content.items():
        if manifest.sha256[name] != hashlib.sha256(each).hexdigest():
            raise UserError(f"{name} is not what the manifest was made for (sha256)")
    if (count := content["rows.jsonl"].count(b"\n")) != manifest.rows:
        raise UserError(f"rows.jsonl: {counted(count, 'row')}, where the manifest says {manifest.rows}")
    if count > MOST_ROWS:
        raise UserError(f"rows.jsonl: {count:,} rows; at most {MOST_ROWS:,}")
    rows = [_row(i + 1, line) for i, line in enumerate(io.BytesIO(content["rows.jsonl"]))]
    code = {name.removeprefix(CODE): each for name, each in content.items() if name.startswith(CODE)}
    lines = enumerate(io.BytesIO(content.get("traces.jsonl", b"")), 1)
    traces = [_as(f"traces.jsonl, line {i}", line, Traced) for i, line in lines]
    if len({one.key for one in traces}) < len(traces):
        raise UserError("traces.jsonl: two traces of one run")
    return Bundle(manifest, digest_of(members["manifest.json"]), rows, {one.key: one for one in traces}, code)


def _row(number: int, line: bytes) -> tuple[dict[str, Any], Row]:
    what = f"rows.jsonl, line {number}"
    if len(line) > LONGEST_LINE:
        raise UserError(f"{what}: more than {LONGEST_LINE:,} bytes")
    record = _as(what, line, dict[str, Any])
    told = record.pop("identity", None)
    if not isinstance(told, dict):
        raise UserError(f"{what}: it has no identity")
    if isinstance(record.get("values"), list):
        record["values"] = [math.inf if value is None else value for value in record["values"]]
    try:
        parsed = {name: msgspec.json.decode(record[name]) for name in PARSED if name in record}
        return told, msgspec.convert(record | parsed, Row)
    except (msgspec.ValidationError, msgspec.DecodeError, TypeError) as error:
        raise UserError(f"{what}: {ascii(str(error))[1:-1][:200]}") from None


def _as(what: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{what}: {ascii(str(error))[1:-1][:200]}") from None
