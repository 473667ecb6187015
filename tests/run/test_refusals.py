"""What this room refuses: one line that names the argument and says what is allowed, or what to do."""

import sys

import pytest

from dpbench.errors import UserError
from dpbench.run import cluster
from dpbench.run.job import make_job
from dpbench.study.grid import GridEntry
from tests.run.test_planted import JOB
from tests.run.test_probes import run, small_problem
from tests.run.test_sweeps import BLOCK


def without_dask():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        cluster.connect("tcp://127.0.0.1:1")


class Dead:
    """A client whose scheduler died as its workers are counted."""

    def nthreads(self):
        raise OSError("Timed out trying to connect to tcp://127.0.0.1:1 after 10 s")


def counted_too_late():
    executor = cluster.Cluster("tcp://127.0.0.1:1")
    executor._client = Dead()
    executor.shares()


def swept(**settings):
    return lambda: GridEntry(**BLOCK, settings=settings, sweep=["clip"])


REFUSED = [  # call, error, what the line names, what it says of it
    *((lambda value=value: make_job(**JOB, planted=value), UserError, "planted", "a number from 0 on")
      for value in (-1, float("nan"), float("inf"))),
    (lambda: run("probe-noise", small_problem(loss="ramp"), T=8, t=9), UserError, "t = 9", "at most T = 8"),
    (lambda: run("probe-kinks", small_problem(loss="ramp"), M=500, T=400), UserError, "T = 400", "needs 800 samples"),
    (swept(clip=1.0), ValueError, "clip", "must be a list"),
    (swept(), ValueError, "clip", "must be a list"),
    (swept(clip={"linspace": [0, 1, 2]}), ValueError, "clip", "must be a value, a list"),
    (without_dask, UserError, "--backend dask", "run: pip install 'dask[distributed]>=2024.8'"),
    (counted_too_late, UserError, "tcp://127.0.0.1:1 went away", "what was finished is kept"),
    (lambda: cluster.perform([], cluster.Parcel("synthetic", "", "0.0.0", ""), None), UserError, "0.0.0",
     "install the same version"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "named", "says"), REFUSED)
def test_a_refusal_names_the_argument_and_what_is_allowed(call, error, named, says):
    with pytest.raises(error) as refusal:
        call()
    line = str(refusal.value)
    assert named in line
    assert says in line
    assert "\n" not in line
