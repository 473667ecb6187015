"""Grid files: what blocks share, what a profile changes, which blocks an artefact takes along, and mistakes."""

import pytest

from dpbench.errors import UserError
from dpbench.study.claims import Artefact
from dpbench.study.experiment import Experiment
from dpbench.study.grid import GridEntry, load_grid, serving

GRID = """
[define]
newton = ["dp-newton-hess-clip", "dp-newton-qu-clip"]
best = { T = "best", step = "best" }
[default]
problems = ["synthetic"]
settings.step = 2
[profiles.full]
default = { epsilon = [1, 3], seeds = 15 }
define.Ts = [3, 10, 30]
[profiles.quick]
default = { epsilon = [1], seeds = 2 }
define.Ts = [3]
[[blocks]]
artefacts = ["table"]
algorithms = ["@newton", "dp-gd"]
settings.T = "@Ts"
quick = { seeds = 1, settings.step = 4 }
also = [
  { artefacts = ["times"], algorithms = ["dp-gd"], seeds = 1, settings = "@best", timed = 3, quick.timed = 1 },
  { artefacts = ["table"], accounting = "tight", also = [{ problems = ["a1a"] }] },
]
[[full]]
artefacts = []
algorithms = ["dp-gd"]
settings = { T = [100], step = [2, 8] }
"""


@pytest.fixture
def load(tmp_path):
    def read(text):
        (tmp_path / "grid.toml").write_text(text)
        return load_grid(tmp_path / "grid.toml")

    return read


def test_blocks_inherit_and_profiles_change_them(load):
    grid = load(GRID)
    full, quick = grid["full"], grid["quick"]
    assert (len(full), len(quick)) == (5, 4)
    assert full[0].algorithms == ["dp-newton-hess-clip", "dp-newton-qu-clip", "dp-gd"]
    assert (full[0].seeds, full[0].epsilon, full[0].settings) == (15, [1, 3], {"step": 2, "T": [3, 10, 30]})
    assert (quick[0].seeds, quick[0].epsilon, quick[0].settings) == (1, [1], {"step": 4, "T": [3]})
    assert [(b.seeds, b.timed, b.settings["T"]) for b in (full[1], quick[1])] == [(1, 3, "best"), (1, 1, "best")]
    assert [(b.accounting, b.problems) for b in full[2:4]] == [("tight", ["synthetic"]), ("tight", ["a1a"])]
    assert full[4].settings == {"T": [100], "step": [2, 8]}


def test_what_best_is_looked_for_among_is_taken_along(load):
    """Blocks that try other values of the tuned settings; not those under another accounting, nor of other methods."""
    full = load(GRID)["full"]
    assert serving("table", full) == [full[0], full[2], full[3]]
    assert serving("times", full) == [full[0], full[1], full[4]]
    fixed = load(GRID.replace('best = { T = "best", step = "best" }', 'best = { T = "best", step = 8 }'))["full"]
    assert serving("times", fixed) == [fixed[1]]  # tuned at another step
    other = load(GRID.replace('algorithms = ["@newton", "dp-gd"]', 'algorithms = ["@newton"]'))["full"]
    assert serving("times", other) == [other[1], other[4]]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("seeds = 1, settings.step", "seed = 1, settings.step", r"unknown field `seed` - at `$.blocks[0]`"),
        ('"tight", also', "1, also", r"Expected `str`, got `int` - at `$.blocks[0].accounting`"),
        ('"@Ts"', '"@Tt"', r"@Tt is not in [define]: known: Ts, best, newton - at `$.blocks[0]`"),
        ("[default]", "[defaults]", r"Expected `array` of blocks, got `dict` - at `$.defaults`"),
        ("define.Ts = [3]", "defined.Ts = [3]", r"unknown field `defined` - at `$.profiles.quick`"),
        ("quick = { seeds = 1, settings.step = 4 }", "quick = 1", r"`object`, got `int` - at `$.blocks[0].quick`"),
        ("[[full]]", "[[ful]]", r"ful is not in [profiles]: did you mean full? - at `$.ful`"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_path(load, old, new, line):
    assert old in GRID
    with pytest.raises(UserError) as error:
        load(GRID.replace(old, new))
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def of_blocks(**profiles):
    """A paper with an artefact "table" and blocks by profile, as (artefacts, problems)."""

    class Made(Experiment):
        def grid(self, config=None):
            shared = {"algorithms": ["dp-gd"], "epsilon": [1.0], "seeds": 1}
            return {name: [GridEntry(artefacts=a, problems=p, **shared) for a, p in blocks]
                    for name, blocks in profiles.items()}  # fmt: skip

    made = Made("mine", "Mine", "Nobody", "mine")
    vars(made)["artefacts"] = (Artefact("table", "Table 1", None),)
    return made


@pytest.mark.parametrize(
    ("profiles", "asked", "told"),
    [
        ({"full": []}, ("fulll",), "unknown profile 'fulll': did you mean full?"),
        ({"full": []}, ("fulll", None, "g.toml"), "g.toml: unknown profile 'fulll': did you mean full?"),
        ({}, ("full",), "unknown profile 'full': the grid has none; add [profiles.full]"),
        ({"full": []}, ("full", "tables"), "mine has no artefact 'tables': did you mean table?"),
        (
            {"full": [(["table"], []), (["table", "tabel", "a"], [])]},
            ("full",),
            "mine has no artefact 'a': known: table",
        ),
        ({"full": [(["tabel"], [])]}, ("full", "table"), "mine has no artefact 'tabel': did you mean table?"),
        ({"full": [(["planted"], [])]}, ("full",), "mine has no artefact 'planted': known: table"),
    ],
)
def test_a_name_that_a_grid_has_wrong_is_told_with_the_right_one(profiles, asked, told):
    with pytest.raises(UserError) as error:
        of_blocks(**profiles).blocks(*asked)
    assert str(error.value) == told


def test_the_problems_of_a_profile_come_in_the_order_of_the_grid_each_once():
    one = of_blocks(full=[([], ["b", "a"]), (["table"], ["c", "a"])], quick=[([], ["d", "b"])])
    assert (one.problems(), one.problems("quick"), one.problems("none")) == (
        ["b", "a", "c"], ["d", "b"], ["b", "a", "c", "d"]
    )  # fmt: skip
    assert [block.problems for block in one.blocks("full", "table")] == [["c", "a"]]
    assert one.has(one.blocks("quick"), "quick")
    assert not one.has(one.blocks("quick"), "full")
    assert not one.has(one.blocks("quick"), "none")
