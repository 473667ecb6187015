"""dpbench's own estimators and `fit` as others would audit them, from what they return."""

import importlib.util
from pathlib import Path

import pytest

from dpbench.auditing.functions import audit_callable

FILE = Path(__file__).resolve().parent.parent.parent / "examples" / "audit_dpbench.py"


@pytest.fixture(scope="module")
def targets():
    spec = importlib.util.spec_from_file_location("own_targets", FILE)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", "regressor", "fit", "coordinates"])
def test_what_is_shipped_passes_with_classes_missing_values_and_outliers(targets, name):
    done = audit_callable(getattr(targets, name), 1.0, runs=200)
    assert done.passed, done


@pytest.mark.slow
def test_classes_that_are_read_off_the_data_fail(targets):
    assert not audit_callable(targets.classes_of_data, 1.0, runs=200).passed
