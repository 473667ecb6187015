"""What this room refuses: one line that names the file or the data set and says what was expected, or what to do."""

import numpy as np
import pytest

from dpbench import datasets
from dpbench.datasets import real, recipes
from dpbench.errors import DataError, NotAtHand, UserError
from tests.datasets.conftest import tiny_file, tiny_spec


def no_folder(home, raw):
    home.write_text("a file where the folder should be")
    datasets.load("log1")


REFUSED = [  # call of (the cache, raw files by name and text), error, what the line names, what it says of it
    (lambda home, raw: datasets.verify("tiny"), NotAtHand, "tiny is not prepared", "dpbench fetch tiny"),
    (no_folder, UserError, "DPBENCH_DATA", "a writable folder"),
    (lambda home, raw: recipes.signs(np.array([0, 1, 2]), 1, 0), DataError, "label 2", "1 or 0 is expected"),
    (lambda home, raw: datasets.describe("adul"), UserError, "adul", "did you mean adult?"),
    (lambda home, raw: tiny_file(sha256=()), ValueError, "tiny.csv", "needs a sha256"),
    (lambda home, raw: real.prepare_adult(raw("adult.data", "39, Private\n", "adult.test", "")), DataError,
     "adult.data: a row of 2 fields", "15 expected"),
    (lambda home, raw: real.read_idx(raw("x", "<html>")["x"]), DataError, "x", "not an IDX file"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "named", "says"), REFUSED)
def test_a_refusal_names_what_and_says_what_to_do(home, raw, registered, call, error, named, says):
    registered(tiny_spec(tiny_file()))
    with pytest.raises(error) as refusal:
        call(home, raw)
    line = str(refusal.value)
    assert named in line
    assert says in line
    assert "\n" not in line
