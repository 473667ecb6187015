"""What a row planned, without its run being made again; against rows that kept it."""

import pandas as pd
import pytest

from dpbench.errors import PrivacyError
from dpbench.run import replay, runner
from dpbench.run.jobs import make_job
from dpbench.run.results import Store

PLANNED = ["epsilon_planned", "epsilon_accounted", "checked_by", "epsilon_realised"]


@pytest.fixture
def stores(tmp_path):
    """Of rows as they are written today, and of the same as they were before plans were kept."""
    now, before = Store(tmp_path, "quick", "now"), Store(tmp_path, "quick", "before")
    jobs = [
        make_job(problem="synthetic", algorithm=name, epsilon=1.0, seed=seed, settings={"alpha": 0.6})
        for name in ("opt", "2opt-ls")
        for seed in (0, 1)
    ]
    assert not runner.run(jobs, now, workers=1).statuses["failed"]
    rows = now.runs().assign(epsilon_planned=None, epsilon_accounted=None, checked_by="")
    rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    before.write([*rows, {"key": "f", "status": "failed", "problem": "synthetic", "algorithm": "opt"}], [])
    return now, before


def test_older_rows_get_what_a_run_made_again_has(stores):
    _, before = stores
    assert replay.fill_planned(before) == 4
    want, got = (store.runs().query("status != 'failed'").sort_values("key").set_index("key") for store in stores)
    assert (want["epsilon_realised"] < want["epsilon_planned"]).any()  # some stop early
    assert got[PLANNED].to_dict() == want[PLANNED].to_dict()
    others = [name for name in want if name not in (*PLANNED, "experiment")]
    pd.testing.assert_frame_equal(got[others], want[others], check_dtype=False)
    assert len(list(before.folder.glob("runs/*"))) == 1
    assert replay.fill_planned(before) == 0
    assert before.runs()["epsilon_planned"].isna().sum() == 1  # of the run that failed


def test_a_row_that_says_it_released_more_is_an_error(stores):
    _, before = stores
    rows = before.runs().query("algorithm == 'opt'").assign(epsilon_realised=0.9)
    rows = rows.assign(checked_by="dp_accounting exact Gaussian")
    before.write(rows.astype(object).where(rows.notna(), None).to_dict("records"), [])
    with pytest.raises(PrivacyError, match="released more than it planned"):
        replay.fill_planned(before)
    assert before.runs()["epsilon_planned"].isna().all()
