"""The receiver decides: honest code keeps its place, whatever was made up or looked up has none."""

import io
import json
import time

import msgspec
import numpy as np
import pytest

import dpbench
from dpbench.archive import harness
from dpbench.problems import build
from dpbench.serving import sandbox
from dpbench.submitting import checking, making, replaying
from tests.submitting.archives import doctored, made, rows

CODE = """
import msgspec
import numpy as np
from dpbench.algorithms.base import Algorithm, BaseSettings, Count, Disclosure, Needs


class Method(Algorithm):
    name = "{name}"
    title = "A {name}"
    needs = Needs(losses=("logistic",))
    discloses = (Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)

    class Settings(BaseSettings):
        T: Count = 20

    def run(self, problem, W, mechanisms, settings, trace):
        rho = mechanisms.budget.rho / settings.T
        for t in range(settings.T):
            noise = mechanisms.gaussian(
                {value}, sensitivity=problem.lipschitz / problem.n, rho=rho, label="gradient"
            )
            {step}
        return {end}
"""
HONEST = {"value": "problem.data_gradient(W)", "step": "W = W - noise / problem.smoothness", "end": "W"}
CHEATS = {
    # the optimum of the public problem, by its size; noise is drawn on zeros
    "lookup": {"value": "0 * W", "step": "pass", "end": "np.tile(np.load('{optimum}'), (len(W), 1)) "
               "if problem.n == 10_000 else W + 1.0"},
    # the optimum of whatever it is given; noise is drawn on zeros
    "peeks": {"value": "0 * W", "step": "pass", "end": "np.tile(problem.optimum().w, (len(W), 1))"},
    # a thousandth of the noise that the ledger has
    "quiet": {"value": "problem.data_gradient(W)", "end": "W",
              "step": "W = W - (problem.data_gradient(W) + 1e-3 * (noise - problem.data_gradient(W))) / 0.25"},
}  # fmt: skip


def here(folder, limits):
    """The harness in this process: what it sends, without a sandbox."""
    pipe = io.BytesIO()
    harness.serve(folder, pipe)
    pipe.seek(0)
    while size := int.from_bytes(pipe.read(4), "big"):
        yield msgspec.msgpack.decode(pipe.read(size), type=harness.TaskResult)


def archived(folder, name, **parts):
    """A submission of CODE with these parts."""
    file = folder / f"{name}.py"
    text = CODE
    for key, value in {"name": name, **parts}.items():
        text = text.replace("{" + key + "}", value)
    file.write_text(text)
    return made(f"{file}:Method", folder / f"{name}.zip", folder / "results")


def rerun(path, run=here, seed=b"s" * 32):
    return checking.check(path, rerun=lambda one: replaying.replay(one, seed, run=run))


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return archived(tmp_path_factory.mktemp("honest"), "honest", **HONEST)


@pytest.mark.thorough
def test_an_honest_method_has_a_place_by_the_receivers_own_rows(honest, tmp_path):
    found = rerun(honest)
    assert (found.problems, found.unchecked, found.placed) == ([], [], True)
    assert len(found.replay.rows) == 5
    ours, stated = ([row.excess for row in found.replay.rows], [row.excess for row in found.submission.rows])
    assert set(ours).isdisjoint(stated)  # other seeds
    assert np.mean(ours) == pytest.approx(np.mean(stated), rel=0.5)
    folder = replaying_merge(honest, tmp_path)
    kept = dpbench.results("leaderboard/submissions/honest", "quick", results=tmp_path)
    assert set(kept["excess"]).isdisjoint(stated)
    assert json.loads((folder / "checked.json").read_text())["placed"]


def replaying_merge(path, results):
    return making.add(path, results, rerun=lambda one: replaying.replay(one, b"s" * 32, run=here))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["peeks", "quiet"])
def test_what_reads_rows_or_noises_nothing_of_them_cannot_be_served(tmp_path, name):
    found = rerun(archived(tmp_path, name, **CHEATS[name]))
    assert "on a private copy of synthetic" in found.problems[0]
    assert not found.placed


@pytest.mark.thorough
def test_a_method_that_is_trusted_gets_the_rows_of_the_copies_and_its_check_says_so(tmp_path):
    path = archived(tmp_path, "peeks", **CHEATS["peeks"])  # as another library's solver would
    found = checking.check(path, rerun=lambda one: replaying.replay(one, b"s" * 32, run=here, trusted=True))
    assert found.placed
    assert "foreign code, trusted, run by us" in found.checked[-1]


@pytest.mark.thorough
def test_an_optimum_that_was_looked_up_is_no_good_on_private_copies(tmp_path):
    np.save(tmp_path / "w.npy", build("synthetic").optimum().w)
    parts = {key: value.replace("{optimum}", str(tmp_path / "w.npy")) for key, value in CHEATS["lookup"].items()}
    parts["value"] = HONEST["value"]  # what is released is a sum, and is not used
    path = archived(tmp_path, "lookup", **parts)
    assert checking.check(path).sound  # what a check without the code cannot see
    found = rerun(path)
    assert found.problems == []
    assert "decades worse than on the public problems" in found.replay.flags[0]
    assert not found.placed


@pytest.mark.thorough
def test_losses_that_were_made_up_consistently_are_found(honest, tmp_path):
    def better(found):
        for row in found:
            row["objective"] -= row["excess"] / 2
            row["excess"] /= 2

    forged = doctored(honest, tmp_path / "forged.zip", rows_jsonl=rows(better))
    assert checking.check(forged).sound
    assert "its code gives F" in rerun(forged).problems[0]

    def lucky(found):  # all but the first seed, which is run again as it was
        for row in found[1:]:
            row["objective"] -= row["excess"] * 0.9
            row["excess"] *= 0.1

    forged = doctored(honest, tmp_path / "lucky.zip", rows_jsonl=rows(lucky))
    assert "under new seeds" in rerun(forged).problems[0]


@pytest.mark.thorough
def test_code_that_ends_early_or_sends_nonsense_proves_nothing(honest):
    def early(folder, limits):
        yield from list(here(folder, limits))[:0]

    assert "ended after 0 of 1" in rerun(honest, early).problems[0]

    def short(folder, limits):
        for frame in here(folder, limits):
            yield msgspec.structs.replace(frame, W=frame.W[:8])

    assert "not as many iterates as runs" in rerun(honest, short).problems[0]

    def nothing(folder, limits):
        for frame in here(folder, limits):
            yield msgspec.structs.replace(frame, W=np.full(len(frame.W) // 8, np.nan).tobytes())

    assert not rerun(honest, nothing).placed

    def unledgered(folder, limits):
        for frame in here(folder, limits):
            yield msgspec.structs.replace(frame, releases=[])

    assert "composes to ε" in rerun(honest, unledgered).problems[0] or "ledger" in rerun(honest, unledgered).problems[0]


def test_without_a_sandbox_it_is_not_re_run(honest, monkeypatch):
    monkeypatch.setattr(sandbox, "at_hand", lambda: None)
    found = rerun(honest, harness.frames)
    assert found.sound
    assert not found.placed
    assert found.unchecked == ["not re-run: no sandbox (bubblewrap) works here; install bubblewrap"]


INSIDE = """
import os, socket
seen = []
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except OSError as error:
    seen.append(type(error).__name__)
seen.append(sorted(set(os.environ) & {"SECRET", "HOME"}))
seen.append(os.path.exists("{outside}"))
try:
    open("method.py", "a")
except OSError as error:
    seen.append(type(error).__name__)
print('{"task": 1}')
raise RuntimeError(repr(seen))
"""


def given(folder, code):
    """A folder with one task for the class X of `code`."""
    folder.mkdir()
    (folder / "method.py").write_text(code + "\nclass X: pass\n")
    np.savez(folder / "a.npz", X=np.eye(3), y=np.array([1.0, -1, 1]), start=np.zeros((1, 3)))
    task = harness.Task(task=7, data="a.npz", loss="logistic", l1=0.0, l2=0.0, epsilon=1.0, delta=1e-6,
                        accounting="tight", relation="replace-one", keys=["a"])  # fmt: skip
    (folder / "tasks.json").write_bytes(msgspec.json.encode(harness.Tasks("X", [task])))
    return folder


def test_the_sandbox_has_no_network_no_environment_and_nothing_to_write(tmp_path, monkeypatch):
    if sandbox.at_hand() is None:
        pytest.skip("bubblewrap is not installed, or does not work here")
    monkeypatch.setenv("SECRET", "told")
    outside = tmp_path / "outside"
    outside.write_text("x")
    monkeypatch.syspath_prepend(tmp_path)  # as the folder is from which python -m dpbench is called
    folder = given(tmp_path / "given", INSIDE.replace("{outside}", str(outside)))
    (frame,) = harness.frames(folder, sandbox.Limits(60, 120))
    assert frame.task == 7
    assert "'OSError', ['HOME'], False, 'OSError'" in frame.error.replace("ConnectionRefusedError", "OSError")


BUBBLEWRAP = """#!/bin/sh
while :; do
  case "$1" in
    --setenv) export "$2=$3"; shift 3;;
    --ro-bind) [ "$3" = /tmp/given ] && cd "$2"; shift 3;;
    --ro-bind-try) shift 3;;
    --proc|--dev|--tmpfs|--size|--remount-ro|--chdir|--cap-drop) shift 2;;
    --*) shift;;
    *) break;;
  esac
done
"""


@pytest.fixture
def instead_of_bubblewrap(tmp_path, monkeypatch):
    """Write the end of a script that reads bubblewrap's options and runs the command without a sandbox."""

    def write(end):
        (tmp_path / "bwrap").write_text(BUBBLEWRAP + end)
        (tmp_path / "bwrap").chmod(0o755)
        sandbox.at_hand.cache_clear()

    monkeypatch.setattr(sandbox.shutil, "which", lambda name: str(tmp_path / "bwrap"))
    yield write
    sandbox.at_hand.cache_clear()


def test_frames_come_over_a_descriptor_and_nothing_that_is_printed_is_read(
    tmp_path, monkeypatch, instead_of_bubblewrap
):
    instead_of_bubblewrap('exec "$@"')
    monkeypatch.setenv("SECRET", "told")
    code = "import os\nprint('x' * 70_000)\nos.system('echo forged')\nraise RuntimeError(os.environ.get('SECRET'))"
    (frame,) = harness.frames(given(tmp_path / "given", code), sandbox.Limits(60, 120))
    assert frame.task == 7
    assert frame.error.endswith("RuntimeError: None")


def test_what_hangs_is_ended_and_what_does_not_work_is_no_sandbox(tmp_path, instead_of_bubblewrap):
    instead_of_bubblewrap('[ "$1" = true ] || exec sleep 60')
    began = time.monotonic()
    assert list(harness.frames(tmp_path, sandbox.Limits(1, 1))) == []
    assert time.monotonic() - began < 30
    instead_of_bubblewrap("exit 1")
    assert sandbox.at_hand() is None


def test_bubblewrap_shares_nothing_and_shows_no_folder_to_write(tmp_path):
    words = sandbox._bubblewrap("bwrap", tmp_path)
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(words)
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert not {"--bind", "--bind-try", "--dev-bind", "--share-net", "--dev-bind-try"} & set(words)
    shown = [words[i + 1] for i, word in enumerate(words) if word.startswith("--ro-bind")]
    assert not {"/", "/etc", "/root", "/home", "/var", "/run"} & set(shown)


def test_a_secret_makes_the_same_copies_again_and_another_other_ones(tmp_path):
    first, again, other = (replaying.copy("breast-cancer-ridge", key) for key in (b"a" * 32, b"a" * 32, b"b" * 32))
    public = build("breast-cancer-ridge")
    assert np.array_equal(first.X, again.X)
    assert first.n != other.n or not np.allclose(first.X[:5], other.X[:5])
    assert 0.6 * public.n <= first.n <= 0.9 * public.n
    assert first.row_norm <= 1 + 1e-12
    # a rotation keeps what rows are to each other
    assert np.allclose(np.sort(np.linalg.norm(first.X, axis=1)), np.sort(np.linalg.norm(again.X, axis=1)))
    gram = np.linalg.svd(np.asarray(public.X), compute_uv=False)[0]
    assert np.linalg.svd(np.asarray(first.X), compute_uv=False)[0] <= gram * (1 + 1e-9)
    assert replaying.copy("square-unit", b"a" * 32).l1 > 0
    path = tmp_path / "secret"
    key = replaying.seed_of(path)
    assert path.stat().st_mode & 0o077 == 0
    assert replaying.seed_of(path) == key != replaying.seed_of(None)
    path.write_text("none")
    with pytest.raises(dpbench.errors.UserError, match="is no hexadecimal file"):
        replaying.seed_of(path)


@pytest.mark.parametrize(
    ("stated", "fresh", "expected"),
    [
        ([1.0, 1.1, 0.9, 1.0], [2.0, 2.1, 1.9, 2.0], True),
        ([1.0, 1.1, 0.9, 1.0], [1.1, 1.0, 0.9, 1.0], False),
        ([2.0, 2.1, 1.9, 2.0], [1.0, 1.1, 0.9, 1.0], False),  # unluckier is no lie
        ([1.0, 1.0], [1.0, np.inf], False),  # one that diverged may be chance
        ([1.0, 1.0, 1.0], [1.0, np.inf, np.inf], True),
        ([1.0, np.inf, 1.0], [2.0, 2.0, 2.0], False),
        ([0.95, 0.95], [1.0, 1.0], False),  # within a tenth
    ],
)
def test_luck(stated, fresh, expected):
    assert replaying.beats_replay(np.array(stated), np.array(fresh)) is expected


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [([0.29], False), ([0.31 + 0.9], True), ([1.0, 1.0, 1.1], True), ([3.0, -3.0], False), ([0.2, 0.25, 0.28], False),
     ([-2.0, -2.1], False)],
)  # fmt: skip
def test_apart(gaps, expected):
    assert replaying.worse_on_copies(np.array(gaps)) is expected
