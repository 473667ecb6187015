"""Processes for tests that kill them: forked off a server that has imported what an interpreter takes seconds for.

They are processes like any other, with a session of their own, but for how they start; what a start itself does is
tested by `python -m dpbench` (test_cli.py and others).
"""

import contextlib
import importlib
import multiprocessing
import os
import signal

import dpbench

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "pytest",
        "dpbench.cli",
        "dpbench.run.runner",
        "dp_accounting",
        "joblib",
        "pandas",
        "pyarrow.parquet",
        "scipy.optimize",
        "scipy.sparse",
        "distributed.cli.dask_scheduler",  # where the extra is installed; a module that is not there is passed over
        "distributed.cli.dask_worker",
    ]
)


def start(folder, function, *arguments, log=os.devnull, **environment):
    """A process in `folder` that calls a function of a module; what it prints goes to the file `log`."""
    process = SERVER.Process(
        target=_child, args=(dpbench.__file__, folder, log, dict(os.environ) | environment, function, arguments)
    )
    process.start()
    return process


def dask(kind, *arguments):
    """What a process has to call to be a "scheduler" or a "worker" of dask."""
    import dask

    dask.config.refresh()  # from the environment of this process
    importlib.import_module(f"distributed.cli.dask_{kind}").main(arguments)


def kill(process):
    """And whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # where it was not yet the leader of a group
    process.join(20)


def _child(package, folder, log, environment, function, arguments):
    os.setsid()
    assert dpbench.__file__ == package
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(log, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    function(*arguments)
