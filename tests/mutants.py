"""Plausible mistakes, nearly all outside the privacy code, and the test of each: `python -m tests.mutants [WORD …]`.

`python -m tests.mutants --random 60 --seed 1 [--from 20]` draws mistakes instead (`tests.random_mutants`).

Each mutant is put into a temporary copy of the tree, never in place, and its test is run there alone. What survives is
listed, and the exit status is 1. Words choose the mutants whose file, test or description contains one of them.
`tests/auditing/mutants.py` has the mistakes that an audit has to notice.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import judging, random_mutants
from tests.random_mutants import COMMON

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("dpbench", "tests", "examples", "pyproject.toml")
WHOLE = (*COPIED, "benchmarks", "datasets", "docs", "figures", "papers", "results", "rivals", "Makefile", "README.md",
         "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "SECURITY.md")  # fmt: skip
# Processor seconds of the tests of a mutant: one that makes them run for ever is noticed, on a busy machine too. By the
# clock they may take ten times as long, for those that wait for something.
LIMIT = 500
LOADED = ("joblib", "matplotlib.figure", "numpy", "pandas", "pyarrow.parquet", "scipy.optimize",
          "scipy.stats", "sklearn.utils.estimator_checks")  # fmt: skip
NONE = 5  # pytest's exit status where there is no test
FIRST = 60  # tests of a random mutant that are run before all the others
SURVIVES, NOTICED, BROKEN, LEFT = "SURVIVES", "noticed", "BROKEN", "left"  # LEFT: for the thorough tests


class Mutant(NamedTuple):
    """`text`, which occurs once in `dpbench/file`, becomes `instead`; `test` (under tests/) has to fail."""

    file: str
    text: str
    instead: str
    test: str
    breaks: str

    def mutated(self, root: Path = ROOT) -> str:
        """The text of the file under `root` with the mistake in it."""
        source = (root / "dpbench" / self.file).read_text(encoding="utf-8")
        if source.count(self.text) != 1:
            raise ValueError(f"{self.file} has {self.text!r} {source.count(self.text)} times; write the mutant anew")
        return source.replace(self.text, self.instead)


# What `compare` tells users to deploy.
RANKING, PILOT, DECISIONS = "comparing/ranking.py", "comparing/pilot.py", "comparing/test_decisions.py::test_"
COMPARING = [
    Mutant("comparing/own_data.py", ', "row_bound=None"]  # as they', "]  # as they",
           DECISIONS + "printed_code_fits_the_rows_as_they_were_compared",
           "the printed code releases a bound that the comparison did not"),
    Mutant("comparing/references.py", "problem.l2 + 1 / (problem.n * problem.d)", "problem.l2 + 1",
           DECISIONS + "the_reference_of_separable_classes_has_the_ridge_of_the_estimators",
           "another ridge than is named"),
    Mutant("own/forecast.py", '("AUC", 0.5) if frame.classes', '("AUC", 0.0) if frame.classes',
           "own/test_plan.py::test_what_is_kept_is_counted_from_chance", "what is kept is counted from nothing"),
    Mutant("schema/cells.py", 'cell.strip(BLANKS) if isinstance(cell, str) else ""',
           'cell if isinstance(cell, str) else ""',
           "schema/test_encoding.py::test_blanks_around_a_date_are_no_part_of_it", "a date with a blank is missing"),
    Mutant("reporting/summary.py", "waits = [NOT_ENOUGH, NO_DATA]", "waits = [NOT_ENOUGH]",
           "reporting/test_diff.py::test_a_verdict_that_changed_is_a_difference_and_one_that_waits_for_rows_is_none",
           "a verdict that waits for data counts as changed"),
    Mutant(RANKING, "self.table if self.inner is None else self.inner", "self.table",
           DECISIONS + "a_method_is_chosen_by_rows_that_it_is_not_scored_on",
           "the method is chosen by the rows that it is scored on"),
    Mutant(RANKING, "over_seeds * few * np.sqrt(1 + 1 / ", "over_seeds / np.sqrt(",
           DECISIONS + "standard_errors_are_of_their_own_columns_over_seeds_and_over_the_draw",
           "one fit is said to vary as little as the mean of all"),
    Mutant("own/engine.py", "float(tail.mean @ W.ravel()) + own, own", "float(tail.mean @ W.ravel()), own",
           "own/test_calibration.py::test_noise_that_is_in_the_gradients_and_in_the_iterates_is_taken_off",
           "noise that gradients and iterates share counts as slope"),
    Mutant("own/engine.py", "(rise + fall) ** 2", "(rise - fall) ** 2",
           "own/test_calibration.py::test_scores_are_multiplied_by_what_the_loss_along_them_asks_for[3.0]",
           "scores are multiplied the wrong way"),
    Mutant(RANKING, 'pick(table, ["algorithm"], "tuned_by")', 'pick(table, ["algorithm"], "mean")',
           DECISIONS + "settings_are_chosen_by_the_rows_in_use_never_by_those_held_out",
           "settings are chosen by the held-out loss"),
    Mutant(RANKING, 'or_infinite(runs["objective"], runs)', 'runs["objective"]',
           DECISIONS + "a_setting_of_which_a_seed_diverged_is_not_chosen",
           "a diverged seed is left out of a setting's mean"),
    Mutant(RANKING, '"drawn": "held_loss_se"', '"drawn": "held_gain_se"',
           DECISIONS + "standard_errors_are_of_their_own_columns_over_seeds_and_over_the_draw",
           "a standard error from the wrong column"),
    Mutant(RANKING, 'gain_sd=("held_gain", "std")', 'gain_sd=("held_loss", "std")',
           DECISIONS + "standard_errors_are_of_their_own_columns_over_seeds_and_over_the_draw",
           "the gain's spread from the loss"),
    Mutant(RANKING, 'over_seeds / np.sqrt(table["seeds"]), drawn', "over_seeds, drawn",
           DECISIONS + "standard_errors_are_of_their_own_columns_over_seeds_and_over_the_draw",
           "a deviation in place of a standard error"),
    Mutant(RANKING, 'table["gain"] > TIE * table["gain_se"]', 'table["gain"] > table["gain_se"]',
           DECISIONS + "useful_is_more_than_two_standard_errors_above_the_constant_answer",
           "useful from one standard error on"),
    Mutant(RANKING, "if (good := useful(by)) else finite", "if (good := []) else finite",
           DECISIONS + "the_best_is_the_first_useful_one_and_ties_are_useful_ones",
           "the best is one that is of no use"),
    Mutant(RANKING, "if best and name in self.useful and name != best.algorithm", "if best and name != best.algorithm",
           DECISIONS + "the_best_is_the_first_useful_one_and_ties_are_useful_ones",
           "what is of no use is as good"),
    Mutant(RANKING, 'outcomes.OUTCOMES[status].blame or (status == "died" and name not in ended)',
           "outcomes.OUTCOMES[status].blame and name not in ended",
           "comparing/test_comparing.py::test_one_defect_takes_a_method_out_and_a_refusal_only_where_nothing_ended",
           "a method with a defect stays where another run of it ended"),
    Mutant(RANKING, "elif status not in outcomes.RESULTS and name not in ended:",
           "elif status not in outcomes.RESULTS:",
           "comparing/test_comparing.py::test_one_defect_takes_a_method_out_and_a_refusal_only_where_nothing_ended",
           "one refusal takes out a method that ended elsewhere"),
    Mutant(PILOT, "ERRORS * float(np.hypot(se, spread))", "ERRORS * float(spread)",
           DECISIONS + "a_trial_cuts_what_is_ten_errors_of_the_difference_behind",
           "the pilot cuts by one side's error"),
    Mutant(PILOT, "if not mean - least <= ERRORS", "if mean - least > ERRORS",
           DECISIONS + "a_trial_cuts_what_is_ten_errors_of_the_difference_behind", "a NaN is not hopeless"),
    Mutant(PILOT, "entered.jobs.pop(references[name], None)", "entered.jobs.pop(name, None)",
           DECISIONS + "a_method_that_failed_in_the_trial_is_not_judged_by_it",
           "a method of a file is cut by its name, which the field does not know"),
    Mutant("comparing/own_data.py", "rmse = (2 * line.mean) ** 0.5", "rmse = line.mean**0.5",
           DECISIONS + "a_regression_is_told_in_the_unit_of_its_target", "the RMSE without the 2 of (y - z)²/2"),
    Mutant("comparing/own_data.py", '"R²": (line.gain, line.gain_spread)', '"R²": (line.gain, line.spread)',
           DECISIONS + "a_regression_is_told_in_the_unit_of_its_target", "the error of R² is that of the loss"),
    Mutant("comparing/ranking.py", "clear = gap > TIE * np.hypot(se[:, None], se[None, :])",
           "clear = gap > TIE * se[:, None]", DECISIONS + "a_method_is_beaten_by_two_errors_of_the_difference",
           "a difference is held against one side's error"),
    Mutant("comparing/ranking.py", "TIE = 2.0", "TIE = 1.0",
           DECISIONS + "a_method_is_beaten_by_two_errors_of_the_difference", "one standard error tells methods apart"),
]  # fmt: skip

TABLES, PINS = "comparing/test_rows.py::test_", "datasets/test_cache.py::test_"
DISK = TABLES + "rows_on_disk_are_those_in_memory_and_of_a_fit[float64-binary-csv]"
DATASETS = [
    Mutant("comparing/rows.py", "(used & kept, held & kept)", "(used & kept, used & kept)", DISK,
           "rows in use are held out too"),
    Mutant("comparing/rows.py", "kept = known & rows.any(axis=1)", "kept = rows.any(axis=1)", DISK,
           "rows without a label are judged by"),
    Mutant("datasets/own.py", "~(np.abs(block) <= largest)", "(np.abs(block) > largest)",
           "datasets/test_own.py::test_bad_input_is_one_line_that_names_argument_and_fix", "NaN is let in"),
    Mutant("datasets/cache.py", "TOLERANCE = 1e-12", "TOLERANCE = 1e-6",
           PINS + "arrays_and_manifest_edited_together_are_refused_by_name", "a pin tolerates changed arrays"),
    Mutant("datasets/cache.py", "TOLERANCE = 1e-12", "TOLERANCE = 0.0",
           PINS + "last_digits_that_another_processor_rounds_are_accepted", "a pin tolerates no rounding"),
    Mutant("datasets/cache.py", "abs(size - pin.fingerprint[part][1]) <= TOLERANCE", "abs(size) >= TOLERANCE",
           PINS + "either_sum_that_moved_is_refused", "a pin's second sum is not compared"),
    Mutant("datasets/cache.py", "np.arange(first + 1, first + 1 + values.size)", "np.arange(1, 1 + values.size)",
           PINS + "a_fingerprint_tells_positions_apart", "blocks may be swapped under a pin"),
]  # fmt: skip

SECOND = "experiments/test_second_order_claims.py::test_"
ACCELERATED = "experiments/test_accelerated.py::test_"
NONCONVEX = "experiments/test_nonconvex.py::test_"
POWER = "study/test_power.py::test_"
VERIFY, VERIFYING = "archive/verifying.py", "archive/test_verifying.py::test_"
EACH_ROW = VERIFYING + "what_one_row_says_of_its_run_is_compared_in_all_rows_without_a_run"
ARCHIVE = [
    Mutant("archive/compared.py", "if row.objective is not None and math.isfinite(row.objective) else 0.0",
           "if row.objective is not None else 0.0", VERIFYING + "a_run_that_diverged_does_not_agree_with_every_number",
           "with an infinite objective every number agrees"),
    Mutant("archive/compared.py", "return type(there) is type(here) and bool(there == here)",
           "return bool((there or None) == (here or None))", VERIFYING + "values_agree_up_to_rounding_alone",
           "0 and False are nothing"),
    Mutant("archive/compared.py", "return 0 < gap <= CHAOTIC * own < math.inf", "return gap < math.inf",
           VERIFYING + "a_row_is_chaotic_only_where_the_run_moves_as_far_itself", "all forgeries are chaotic"),
    Mutant(VERIFY, "return pin is not None and (", "return pin is not None or (",
           VERIFYING + "arrays_that_are_pinned_are_those_of_another_processor", "other data count as pinned"),
    Mutant(VERIFY, 'return "wrong" if self.problems else "not checked" if self.unchecked else "holds"',
           'return "wrong" if self.problems else "holds"',
           VERIFYING + "what_no_second_run_confirms_is_not_checked_until_the_reader_accepts_it",
           "what could not be looked at holds"),
    Mutant(VERIFY, "if orphans := len(archive.traces.keys() - keys):", "if orphans := 0:",
           VERIFYING + "no_forgery_holds",
           "a trace needs no row"),
    Mutant(VERIFY, "if missing := len(asked.keys() - keys):", "if missing := 0:",
           VERIFYING + "rows_that_were_not_run_are_counted", "planned runs may be missing"),
    Mutant(VERIFY, "if not row.timed and (row.seconds is not None or times):", "if False:",
           VERIFYING + "what_does_not_fit_its_key_is_found_without_a_run", "untimed runs may state seconds"),
    Mutant(VERIFY, "result.problems += unlike[:1]", "result.problems += unlike[:0]", EACH_ROW,
           "rows that no sample holds are not compared"),
    *(Mutant(VERIFY, f'"{name}", ', "", f"{EACH_ROW}[{name}-<lambda>]", f"a row may say another {name} than its key")
      for name in ("algorithm", "sweep", "planted", "accounting")),
    Mutant(VERIFY, ', "counts_public"):', "):", f"{EACH_ROW}[counts_public-<lambda>]",
           "a row may hide what counts as public"),
    Mutant(VERIFY, "if row.private and not before.private:", "if False:",
           VERIFYING + "a_default_setting_and_the_claim_of_privacy_are_those_of_the_key",
           "a run without noise calls itself private"),
    Mutant(VERIFY, "for name, value in (before.settings or {}).items():", "for name, value in ():",
           VERIFYING + "a_default_setting_and_the_claim_of_privacy_are_those_of_the_key",
           "a row may say another default than ran"),
    Mutant(VERIFY, "if chosen and traced and all(one.trace is None for one in chosen):", "if False:",
           VERIFYING + "of_few_traces_one_is_made_again", "a sample may miss all traces of few"),
    Mutant("archive/compared.py", "_size(again) if name == \"excess\" else 0.0", "math.inf",
           VERIFYING + "no_forgery_holds[accept0-invented traces]", "traces a hundredth as high hold"),
    Mutant(VERIFY, "if untraced := sum(", "if untraced := 0 * sum(", VERIFYING + "no_forgery_holds[accept1-no traces]",
           "traces may be left out"),
    Mutant(VERIFY, "if row.timed and row.seconds is None and row.status in RESULTS:", "if False:",
           VERIFYING + "no_forgery_holds[accept1-times left out]", "timed rows need no seconds"),
    Mutant("run/store.py", "return key in self.results and (not trace or key in self.traced)",
           "return key in self.results",
           "study/test_standing.py::test_run_starts_as_many_runs_as_status_and_pages_count",
           "run takes a row without its trace for finished"),
]  # fmt: skip

CHECKING, RECEIVER = "submitting/checking.py", "submitting/test_submitting.py::test_"
FOURTH, SERVER = "submitting/test_fourth_set.py::test_", "serving/server.py"
COPIES = RECEIVER + "a_copy_is_of_the_public_problem_s_kind_and_of_rows_that_nobody_has_seen"
SUBMITTING = [
    Mutant(CHECKING, "return self.sound and self.how != OPEN", "return self.sound",
           RECEIVER + "without_a_sandbox_it_has_no_place", "a place without a sandbox"),
    Mutant(CHECKING, "secret = secrets.token_bytes(32)", 'secret = b"s" * 32',
           RECEIVER + "two_checks_draw_other_copies_and_seeds", "the copies are those of the last check"),
    Mutant(CHECKING, "seed=secrets.randbits(39)", "seed=job.seed",
           RECEIVER + "two_checks_draw_other_copies_and_seeds", "seeds are known before"),
    Mutant(CHECKING, "if evidence and (differs := repeat(method.code, evidence)):", "if differs := \"\":",
           RECEIVER + "a_run_is_repeated_and_what_differs_is_wrong", "no run is repeated"),
    Mutant(CHECKING, "if row.status not in RESULTS:", "if False:",
           RECEIVER + "trusted_code_that_says_more_than_its_budget_is_wrong", "a run beyond its ε counts"),
    Mutant(CHECKING, "if np.allclose(W, found.W, rtol=wire.ROUNDING, atol=wire.ROUNDING):", "if False:",
           RECEIVER + "a_renamed_copy_of_a_built_in_method_is_found_by_its_transcript", "copies of our methods get in"),
    Mutant("serving/wire.py", 'name == "label" or _alike', "_alike",
           RECEIVER + "a_renamed_copy_of_a_submission_is_found_by_its_transcript", "a copy renames its labels"),
    Mutant(CHECKING, "if told := taken(manifest.method, manifest.title, others):", "if told := \"\":",
           RECEIVER + "a_name_or_title_that_is_another_s_is_refused_before_anything_runs", "a name may be another's"),
    Mutant(CHECKING, "if told := _otherwise(method, manifest):\n            report",
           "if told := \"\":\n            report",
           RECEIVER + "a_name_or_title_that_is_another_s_is_refused_before_anything_runs[changes4-its code calls itself"
           " honest-steps]", "a manifest names another method than the code is"),
    Mutant(CHECKING, "if told := _otherwise(method, manifest):\n                raise",
           "if told := \"\":\n                raise",
           FOURTH + "a_method_that_has_another_name_in_another_process_is_wrong", "rows go by another's name"),
    Mutant(CHECKING, ", getattr(method, \"library\", \"\"))", ", manifest.library)",
           FOURTH + "a_manifest_that_names_a_library_is_wrong", "a method passes for another library's solver"),
    Mutant(CHECKING, "if one.evidence) > KEPT:", "if one.evidence) < 0:",
           FOURTH + "transcripts_have_a_size_together", "transcripts take the receiver's memory"),
    Mutant("archive/content.py", "(path / name).is_symlink() or not (path / name).is_file()", "False",
           FOURTH + "a_folder_s_files_are_plain_files[manifest.json-<lambda>]", "a folder has a link to another file"),
    Mutant(SERVER, "if 8 * math.prod(summed.shape) > wire.LARGEST:", "if False:",
           FOURTH + "a_sum_of_more_numbers_than_a_frame_holds_is_refused_by_its_shape",
           "a sum takes the server's memory"),
    Mutant("serving/wire.py",
           "        check_settings(*vars(self.needs).values(), *self.fixed.values())", "        pass",
           "serving/test_process.py::test_what_a_process_says_of_its_method_is_not_believed[forged15-malformed]",
           "what a name fixes is a command to a terminal"),
    Mutant("serving/wire.py", "        check_settings(self.default)", "        pass",
           "serving/test_process.py::test_what_a_process_says_of_its_method_is_not_believed[forged12-malformed]",
           "a default is a command to a terminal"),
    Mutant("submitting/copies.py", "MIXED = (math.pi / 8, 3 * math.pi / 8)", "MIXED = (0.0, 0.0)",
           COPIES, "a copy has turned public rows"),
    Mutant("submitting/copies.py", "PLANTED = 0.15", "PLANTED = 0.0",
           RECEIVER + "who_finds_the_basis_by_moments_has_not_the_optimum", "a turned public optimum is the copy's"),
    Mutant("submitting/copies.py", "    mixed = mixed @ _basis(public, rng)\n", "", COPIES,
           "a copy has the public basis, and nearly the public optimum"),
    Mutant("leaderboard/stored.py", "nulls[name] / own[name]", "1.0",
           "experiments/test_leaderboard.py::test_a_score_on_a_private_copy_is_of_that_copy",
           "a score is of a copy's loss and the public problem's unit"),
]  # fmt: skip

PAGES = "reporting/test_pages.py::test_"
REPORTING = [
    Mutant("reporting/reproduction.py", '("" if record["setting"] == BOTH else record["setting"])', '""',
           PAGES + "every_verdict_of_a_claim_is_shown_with_what_it_is_of", "a verdict of one setting stands for both"),
    Mutant("reporting/summary.py", "if one.survival else one.word", "if True else one.word",
           "reporting/test_diff.py::test_only_a_value_that_is_reproduced_survives_or_not",
           "a value that is not reproduced is said not to survive"),
    Mutant("reporting/summary.py", 'runs = runs[runs["timed"].eq(0)]', "runs = runs",
           "reporting/test_diff.py::test_timed_runs_and_other_experiments_do_not_mix",
           "timed runs count as more seeds"),
    Mutant("reporting/summary.py", "value=or_infinite(value, runs),", "value=value,",
           "reporting/test_diff.py::test_one_diverged_run_makes_the_mean_of_its_setting_infinite",
           "a diverged run keeps its number"),
    Mutant("reporting/reproduction.py", 'frame[~frame["run_time"].astype(bool)]',
           'frame', "reporting/test_reproduction.py::test_run_times_are_no_published_values", "run times are in"),
    Mutant("reporting/reproduction.py", '*(one.words[word] for', '*(one.words[MATCH] for',
           "reporting/test_reproduction.py::test_the_table_has_each_count_in_its_column", "match in place of exact"),
]  # fmt: skip

VERDICTS, LAWS, TUNER = "study/test_value_verdict.py::test_", "study/test_laws.py::test_", "study/test_tuning.py::test_"
STUDY = [
    Mutant("experiments/zeroth_order/kinks.py", "yield NOT_TESTABLE if held and passes else held", "yield held",
           "experiments/test_zeroth_order.py::test_the_claim_on_the_rates_can_fail", "wrong epochs keep a verdict"),
    Mutant("run/probes.py", "g = grad * first + diff * (right - first)", "g = right",
           "run/test_probes.py::test_the_kinks_probe_notes_what_its_oracle_is_off_by", "an oracle without DIFF has it"),
    Mutant("problems/stationarity.py", "(self.d + 1) / 2, t * t)", "(self.d - 1) / 2, t * t)",
           "problems/test_stationarity.py::test_the_kinks_smoothed_gradient_is_the_mean_over_the_ball",
           "the smoothed gradient is that over a sphere"),
    Mutant("study/value_verdict.py", "    if value.run_time:\n        return Outcome(NOT_COMPARABLE, OTHER_COSTS",
           "    if value.run_time and stream is None:\n        return Outcome(NOT_COMPARABLE, OTHER_COSTS",
           VERDICTS + "a_run_time_cannot_enter_a_share", "a run time is tried after the stream"),
    Mutant("study/value_verdict.py", "if agreed == {printed.EQUAL}:", "if agreed == {printed.EQUAL} and runs is None:",
           VERDICTS + "exact_is_tried_before_match_and_no_data_before_not_comparable", "match is tried before exact"),
    Mutant("study/value_verdict.py", "if not _has_values(value, runs) and stream is None:",
           "if not (_has_values(value, runs) or stream or value.not_comparable):",
           VERDICTS + "exact_is_tried_before_match_and_no_data_before_not_comparable",
           "not comparable is tried before no data"),
    Mutant("study/value_verdict.py", "least = min(1.0, min(chances) * len(chances))", "least = min(chances)",
           VERDICTS + "a_synthetic_paper_of_true_values_differs_in_one_of_twenty_before_the_correction",
           ".05 for each of q numbers of a value"),
    Mutant("study/value_verdict.py", "if one.word == DIFFERS and not stands(i, one.chance) else one",
           "if False else one",
           VERDICTS + "the_correction_releases_what_chance_gives_and_keeps_what_is_far",
           "no correction for the number of values"),
    Mutant("study/value_verdict.py", "one.word == EXACT or one.word in LEFT_OUT else one.chance",
           "False else one.chance",
           VERDICTS + "a_trivial_value_does_not_loosen_the_correction", "trivial values are among the tested"),
    Mutant("study/value_verdict.py", "other = np.where(np.arange(len(chances)) == i, chance, chances)",
           "other = np.append(chances, chance); i = len(chances)",
           VERDICTS + "a_planted_run_is_judged_alone_in_the_right_report", "a planted run moves the bar"),
    Mutant("study/value_verdict.py", "return self.word not in LEFT_OUT and not self.copy_of", "return not self.copy_of",
           VERDICTS + "trivial_values_and_copies_count_in_no_share", "trivial values are in the shares"),
    Mutant("study/value_verdict.py", "return self.word not in LEFT_OUT and not self.copy_of",
           "return self.word not in LEFT_OUT", VERDICTS + "a_value_with_the_runs_of_its_neighbour_becomes_a_copy",
           "a copy is counted"),
    Mutant("study/value_verdict.py", "        if False in known:\n            return BLIND\n", "",
           VERDICTS + "what_also_comes_out_of_wrong_noise_is_blind_to_it", "a match needs no power"),
    Mutant("study/value_verdict.py", "known = [self.notices.get(recipe) for recipe in DECIDING]",
           "known = [self.notices.get(DECIDING[0])]",
           VERDICTS + "what_also_comes_out_of_wrong_noise_is_blind_to_it", "twice the noise is not asked for"),
    Mutant("study/value_verdict.py", "if varies and name not in DECIDING and", "if varies and",
           VERDICTS + "what_also_comes_out_of_wrong_noise_is_blind_to_it", "runs that always crash say nothing"),
    Mutant("study/value_verdict.py", "UNPLANTED if None in known else", "UNPLANTED if False else",
           VERDICTS + "a_value_without_planted_runs_is_neither_exact_nor_a_match", "no planted runs are enough"),
    Mutant("study/value_verdict.py", "return BLIND\n", "return BLIND if len(self.notices) < 9 else MATCH\n",
           VERDICTS + "other_recipes_are_shown_and_never_decide", "a long menu of recipes gives power"),
    Mutant("study/value_verdict.py", "word = CANNOT_TELL if blind and", "word = SURVIVES if blind and",
           VERDICTS + "an_exact_value_survives_only_if_means_alone_would_have_noticed",
           "a test without power says that a value survives"),
    Mutant("study/value_verdict.py", "survival=NOT_RUN, how=few", "survival=LOST, how=few",
           VERDICTS + "survival_is_yes_no_not_run_or_cannot_tell", "what was not run is lost"),
    Mutant("study/printed.py", "TIE if any(agree) else OTHER", "EQUAL if any(agree) else OTHER",
           "study/test_printed.py::test_rounding_on_the_decimal_string", "one rounding rule is enough for equality"),
    Mutant("study/headline.py", "judged = [one for one in compared if one[\"counts\"]]", "judged = compared",
           VERDICTS + "trivial_values_and_copies_count_in_no_share", "the sentence counts copies and trivial values"),
    Mutant("study/claims.py", "return None if self.held + self.missing >= bar * of else False", "return False",
           SECOND + "a_missing_cell_that_can_turn_a_claim_leaves_it_open", "a missing cell counts against the claim"),
    Mutant("study/claims.py", "of = max(1, self.seen + self.missing)", "of = max(1, self.seen)",
           SECOND + "a_missing_cell_that_can_turn_a_claim_leaves_it_open", "missing cells are dropped"),
    Mutant("study/claims.py", "if len({*verdicts.values()}) == 1:", "if True in verdicts.values():",
           SECOND + "a_claim_that_hangs_on_a_choice_of_ours_is_open_and_says_on_which", "one choice is enough"),
    Mutant("experiments/second_order/claims.py", "lost, unsure = best <= own,", "lost, unsure = own <= best,",
           SECOND + "a_cell_is_lost_to_any_method_and_won_only_against_all", "the sides are exchanged"),
    Mutant("experiments/accelerated/__init__.py", "return NOT_TESTABLE if sure and turned else sure,", "return sure,",
           ACCELERATED + "what_holds_exchanged_is_not_testable_and_what_other_seeds_turn_is_open",
           "a claim that holds with its sides exchanged is held"),
    Mutant("experiments/accelerated/__init__.py", ">= 1 - laws.LEVEL else None", ">= 0 else None",
           ACCELERATED + "what_holds_exchanged_is_not_testable_and_what_other_seeds_turn_is_open",
           "a claim that other seeds would turn is held"),
    Mutant("experiments/nonconvex/claims.py", "True if lead.low > gap else False if lead.high < -gap else None",
           "lead.value > gap", NONCONVEX + "a_lead_of_minibatches_that_other_seeds_would_turn_is_open",
           "a lead is judged without its interval"),
    Mutant("experiments/nonconvex/claims.py", "[ratio.beyond(FAR_LESS) for ratios, _ in",
           "[ratio.value >= FAR_LESS for ratios, _ in",
           NONCONVEX + "a_factor_whose_interval_has_the_bar_in_it_leaves_the_claim_open",
           "a factor is judged without its interval"),
    Mutant("experiments/zeroth_order/rows.py", "if missing := context.unfinished(artefact):", "if missing := \"\":",
           "experiments/test_zeroth_order.py::test_where_runs_are_missing_the_others_are_no_verdict",
           "a part of the runs is a verdict"),
    Mutant("experiments/nonconvex/claims.py", "return None if held and gaps else held", "return held",
           NONCONVEX + "a_table_without_rows_leaves_the_claim_on_hessians_open",
           "a table without rows has no second Hessian"),
    Mutant("experiments/accelerated/__init__.py", "turn = {one: other, other: one}", "turn = {}",
           ACCELERATED + "claims_that_hold_on_made_up_rows", "no side is exchanged"),
    Mutant("study/power.py", "verdict.word == HELD and turned == [HELD]", "verdict.word == HELD and turned == []",
           POWER + "what_holds_exchanged_too_is_not_testable_and_what_does_not_hold_stays",
           "a claim that holds exchanged, too, stays held"),
    Mutant("study/power.py", "super().traces(runs.iloc[:0] if self.planted else runs)", "super().traces(runs)",
           POWER + "planted_runs_stand_under_the_keys_of_the_right_ones_and_have_no_traces",
           "runs with wrong noise have the traces of right ones"),
    Mutant("study/power.py", "runs[\"planted\"].isna() & runs[\"timed\"].eq(0)", "runs[\"planted\"].isna()",
           POWER + "planted_runs_stand_under_the_keys_of_the_right_ones_and_have_no_traces",
           "planted runs stand for timed ones"),
    Mutant("study/laws.py", "return bool(self.value > bar) is not below", "return (self.value > bar) is not below",
           "study/test_laws.py::test_intervals_hold_the_level",
           "a bar of NumPy's turns a verdict"),
    Mutant("study/headline.py", "one[\"verdict\"] in (EXACT, MATCH, DIFFERS) and ratio == ratio", "ratio == ratio",
           VERDICTS + "transients_do_not_narrow_the_pooled_ratio", "values that notice nothing are pooled"),
    Mutant("study/laws.py", "LEVEL = 0.05", "LEVEL = 0.3",
           VERDICTS + "a_synthetic_paper_of_true_values_differs_in_one_of_twenty_before_the_correction",
           "another level"),
    Mutant("study/printed.py", "if len(values) != number.k or not", "if not",
           VERDICTS + "exact_is_every_printed_number_of_as_many_runs", "exact by fewer runs than the paper's"),
    Mutant("study/value_verdict.py", "key=lambda on: (len(on), sorted(", "key=lambda on: (-len(on), sorted(",
           VERDICTS + "the_smallest_set_of_switches_explains", "the largest set of switches explains"),
    Mutant("study/value_verdict.py", "all(known[name].keeps_epsilon for name in value.switches)",
           "any(known[name].keeps_epsilon for name in value.switches)",
           VERDICTS + "a_setting_keeps_epsilon_where_all_of_its_switches_do", "one harmless switch makes all private"),
    Mutant("study/printed.py", "share = (len(finite) / len(values)) ** k", "share = 1.0",
           VERDICTS + "diverged_runs_are_no_agreement", "diverged runs are left out"),
    Mutant("study/printed.py", "and finite.min() >= 0 else finite", "and finite.min() < 0 else finite",
           VERDICTS + "a_mean_below_a_share_of_one_of_ours_is_not_of_such_runs", "runs far off hide twice the noise"),
    Mutant("study/laws.py", "math.sqrt(1 / k + 1 / N)\n    with", "math.sqrt(1 / k)\n    with",
           LAWS + "few_runs_are_judged_by_student_and_fisher", "our mean is taken as the truth"),
    Mutant("study/laws.py", "np.arange(1, len(chances) + 1) / max(1, len(chances))", "1 / max(1, len(chances))",
           LAWS + "benjamini_and_hochberg", "Bonferroni in place of Benjamini and Hochberg"),
    Mutant("study/laws.py", "- slack, 0) * np.sign(", "+ slack, 0) * np.sign(",
           LAWS + "a_printed_number_stands_for_its_rounding_interval",
           "the farthest end of a rounding interval counts"),
    Mutant("study/laws.py", "return ended if printed else 1 - ended", "return ended",
           LAWS + "counts_have_exact_laws", "the chance of × is that of yes"),
    Mutant("study/plan.py", "if not others or all(first == other for other in others):", "if True:",
           "study/test_standing.py::test_each_run_counts_once_and_for_what_it_is",
           "seeds that another block asks for are not counted"),
    Mutant("run/store.py", 'ended.count(None), ended.count("out of reach")', "ended.count(None), 0",
           "study/test_standing.py::test_each_run_counts_once_and_for_what_it_is",
           "what is beyond reach counts as failed"),
    Mutant("study/tuning.py", "shared[:: 1 + (split == \"halves\")]", "shared",
           TUNER + "a_lucky_half_chooses_and_the_other_half_tells", "seeds that chose tell the score"),
    Mutant("study/tuning.py", ' | (np.array(columns.status, dtype=object) == "diverged")', "",
           TUNER + "a_diverged_seed_disqualifies_its_setting", "a diverged run is an excess like any"),
]  # fmt: skip

PLACES = "leaderboard/test_places.py::test_"
SETS = "datasets/test_sets.py::test_"
HEADLINE = "leaderboard/test_headline.py::test_"
LEADERBOARD = [
    Mutant("leaderboard/places.py", "scores.setdefault((problem, epsilon, algorithm), scale.worst)",
           "scores.setdefault((problem, epsilon, algorithm), 0.0)",
           PLACES + "a_diverged_seed_a_failed_run_and_a_missing_cell_score_the_worst", "a missing cell scores 0"),
    Mutant("leaderboard/places.py", "waiting = {at[:2] for at in own", "waiting = {at[:2] for at in planned",
           PLACES + "a_problem_that_not_every_own_method_was_run_on_waits",
           "an installed method keeps problems off the board"),
    Mutant("leaderboard/headline.py", "int((shares > 0).sum()), int(", "int((shares >= 0).sum()), int(",
           HEADLINE + "quartiles_and_the_sign_test_are_of_families", "a tie counts as better than w = 0"),
    Mutant("leaderboard/headline.py", "drawn.get((p, choice.get(p, AUTO)), values)", "values",
           HEADLINE + "a_difference_is_found_where_there_is_one_and_zero_where_the_default_is_that_method",
           "the default differs from itself by its draws"),
    Mutant("leaderboard/headline.py", "values[chosen, np.arange", "values[np.arange(len(values)), np.arange",
           HEADLINE + "seeds_and_families_both_widen_the_interval", "families are not resampled"),
    Mutant("leaderboard/headline.py", "(1 - LEVEL) / count", "(1 - LEVEL)",
           HEADLINE + "the_least_reach_is_where_a_sign_test_over_seeds_says_so",
           "any of many methods counts as better than w = 0 at the level of one"),
    Mutant("datasets/bounded_tables.py", "np.sqrt(1 + len(_numbers(one)) + len", "np.sqrt(len(_numbers(one)) + len",
           SETS + "a_table_is_scaled_by_what_is_written_down_alone", "rows of a table are longer than 1"),
    Mutant("datasets/bounded_tables.py", "(values - low) / (high - low)",
           "(values - np.nanmin(values)) / (np.nanmax(values) - np.nanmin(values))",
           SETS + "a_table_is_scaled_by_what_is_written_down_alone", "bounds of a table are of its rows"),
    Mutant("leaderboard/places.py", "CLIP if self.best is None else 1.0", "CLIP",
           PLACES + "a_held_out_loss_scores_by_the_share_of_the_gain_that_is_kept", "shares are cut off at -3"),
    Mutant("leaderboard/places.py", "CLIP = 3.0  # decades", "CLIP = 2.0  # decades",
           PLACES + "a_score_is_decades_above_nothing", "scores are clipped at two decades"),
    Mutant("leaderboard/places.py", 'untimed = runs[runs["timed"].eq(0)]', "untimed = runs",
           PLACES + "timed_rows_do_not_count_and_an_excess_of_nothing_is_no_success", "timed runs are more seeds"),
    Mutant("leaderboard/places.py", ".where(ended, math.inf).fillna(math.inf)", ".fillna(math.inf)",
           PLACES + "a_diverged_seed_a_failed_run_and_a_missing_cell_score_the_worst", "a failed run has a loss"),
    Mutant("leaderboard/places.py", 'sort_values(by, kind="stable")', 'sort_values(by, kind="stable", ascending=False)',
           PLACES + "settings_are_picked_by_the_lowest_of_what_is_named_and_the_first_of_equals",
           "the worst settings are picked"),
    Mutant("leaderboard/places.py", "place += name not in unpaid", "place += 1",
           PLACES + "what_takes_from_the_data_unpaid_is_listed_and_has_no_place", "an unpaid method takes a place"),
    Mutant("leaderboard/places.py",
           "table.assign(family=table[\"problem\"].map(lambda problem: families.get(problem, problem)))",
           'table.assign(family=table["problem"])',
           PLACES + "families_count_once_however_many_problems_they_have", "each problem is a family"),
    Mutant("leaderboard/places.py", 'score=missing["score"].fillna(worst)', 'score=missing["score"].fillna(0.0)',
           PLACES + "the_default_is_the_chosen_method_of_each_problem_and_missing_where_it_is",
           "the default's missing cell scores 0"),
]  # fmt: skip

SCHEMA, ENCODED, FILES = "schema/encoding.py", "schema/test_schema.py::test_", "schema/test_tables.py::test_"
ENCODING = [
    Mutant(SCHEMA, "return most, self.intercept + others", "return most, others",
           ENCODED + "the_bound_on_a_row_is_reached", "the unit is one group too small"),
    Mutant(SCHEMA, "if not isinstance(step, Missing) and step.numeric)",
           "if not isinstance(step, Missing | DatePart) and step.numeric)",
           ENCODED + "the_bound_on_a_row_is_reached", "the parts of a date do not count"),
    Mutant(SCHEMA, "            steps.append(Missing(name))", "            pass",
           ENCODED + "categories_dates_and_missing_cells", "no column tells what is missing"),
    Mutant("schema/cells.py", "np.clip(units, -1, 1, out=units)", "pass",
           ENCODED + "numbers_go_from_their_bounds_to_one_and_categories_stay_zero_and_one",
           "values beyond their bounds are not moved"),
    Mutant(SCHEMA, "X[zero] = 0.0", "pass", ENCODED + "a_row_that_is_dropped_is_zeros_and_is_kept_to_predict",
           "a dropped row is kept"),
    Mutant(SCHEMA, "if fitting and self.dropped:", "if self.dropped:",
           ENCODED + "a_row_that_is_dropped_is_zeros_and_is_kept_to_predict", "rows to predict are dropped"),
    Mutant("schema/cells.py", "if column.dtype == object:\n        return", "if False:\n        return",
           "schema/test_encoding.py::test_each_cell_is_read_by_itself", "True counts as an earlier 1"),
    Mutant("schema/tables.py", "dtype = {names.index(name): str for name in texts if name != unit}", "dtype = {}",
           FILES + "one_row_changes_no_other_of_any_kind[code]", "pandas finds the type of a category by all rows"),
    Mutant("schema/tables.py", "if not np.isin(beside, self._ends).all():", "if False:",
           FILES + "a_row_that_is_none_is_refused_in_words_that_say_nothing_of_it_or_changes_no_other",
           "an open quote takes the rows behind it"),
    Mutant("schema/tables.py", "integer_object_nulls=True", "integer_object_nulls=False",
           FILES + "whole_numbers_of_parquet_stay_whole_beside_a_gap", "one gap rounds the whole numbers of all rows"),
]  # fmt: skip

FACE, SPEC, ENGINE, MODEL = "own/estimators.py", "own/spec.py", "own/engine.py", "own/model.py"
CLASSES, CONTRACT, FACES = "own/test_decisions.py::test_", "own/test_contract.py::test_", "own/test_models.py::test_"
CELLS = "schema/encoding.py"
GRAPH = "own/test_exporting.py::test_the_graph_predicts_as_the_model_does[two-given0]"
RECORDED = CONTRACT + "no_method_is_lost_and_no_noise_changes[two-None]"
ROWS = CONTRACT + "the_rows_of_a_fit_are_those_of_its_predictions[private-two]"
OWN = [
    Mutant(FACE, "(scores > 0).astype(int)", "(scores < 0).astype(int)",
           CLASSES + "the_second_of_two_classes_has_the_positive_scores", "the two classes are swapped"),
    Mutant("own/arguments.py", "return tuple(sorted(found))", "return tuple(found)",
           CLASSES + "classes_are_sorted_and_a_label_beyond_makes_its_row_zeros",
           "classes keep the order they were given in"),
    Mutant(ENGINE, "rows[~known] = 0.0  # an unknown label", "# an unknown label",
           CLASSES + "classes_are_sorted_and_a_label_beyond_makes_its_row_zeros",
           "a label beyond counts as the first class"),
    Mutant(FACE, "if self.budget is not None:  # before", "if False:  # before",
           FACES + "every_fit_of_model_selection_is_charged_to_the_budget", "a fit is not charged to the budget"),
    Mutant(FACE, "what, plan.releases, whole.epsilon", "what, (), whole.epsilon",
           CLASSES + "a_fit_is_charged_for_what_it_releases[classes0]", "the budget is not told what is released"),
    Mutant(MODEL, "np.hstack([1 - p, p])", "np.hstack([p, 1 - p])",
           CLASSES + "the_second_of_two_classes_has_the_positive_scores", "probabilities in the wrong columns"),
    Mutant(MODEL, "start = start - slopes @ (step.high / 2 + step.low / 2)", "pass",
           FACES + "two_classes_of_any_name_a_frame_and_its_names", "an intercept in other units"),
    Mutant(CELLS, "X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]", "pass",
           FACES + "a_known_row_bound_is_used_and_longer_rows_are_shortened",
           "rows beyond a bound are not shortened"),
    Mutant(FACE, "seed = None if self.random_state is None", "seed = 0 if self.random_state is None",
           FACES + "noise_is_fresh_unless_a_state_is_given_which_is_no_release", "every fit draws the same noise"),
    *(
        Mutant(file, text, instead, "own/test_intervals.py::test_" + test, breaks)
        for file, text, instead, test, breaks in (
            ("own/intervals.py", "np.eye(len(free)) * step.moment_std**2", "np.eye(len(free)) * 0.0",
             "the_deviation_has_a_part_for_each_noise", "intervals without the noise of the moments"),
            ("own/intervals.py", "* true * step.curvature_std**2 / 2", "* true * 0.0",
             "the_deviation_has_a_part_for_each_noise", "intervals without the noise of the curvature"),
            ("own/intervals.py", "np.linalg.eigvalsh(step.gram[square])", "np.linalg.eigvalsh(step.curvature[square])",
             "whether_there_are_intervals_is_read_off_the_other_matrix_alone", "a lucky matrix decides for itself"),
            ("own/intervals.py", "u = step.w.copy()", "u = 0 * step.w",
             "the_deviation_has_a_part_for_each_noise", "the way of the step is left out"),
            ("algorithms/sufficient_statistics.py", "sigma / math.sqrt(T - first)", "sigma",
             "the_noise_of_each_release_has_its_variance_and_the_step_says_it[add_remove]", "means as noisy as one"),
            ("algorithms/sufficient_statistics.py", "first = T // 2", "first = 3",
             "the_mean_is_of_iterates_that_have_arrived", "means over iterates on their way"),
            ("problems/exact.py", "c = _within(loss(z, y, out), most)", "c = loss(z, y, out)",
             "a_replaced_row_moves_the_two_releases_by_no_more_than_declared[ExactProblem]", "unclipped scores"),
            ("algorithms/newton_step.py", "(math.sqrt(2) if mechanisms.doubled else 1.0) * square", "square",
             "the_noise_of_a_step_of_two_classes_is_what_it_says", "intervals of noise of other neighbours"),
            ("algorithms/newton_step.py", "problem.loss.smoothness * problem.row_bound**2", "problem.row_bound**2 / 8",
             "a_replaced_row_moves_the_releases_of_two_classes_by_no_more_than_declared[Problem]",
             "half of the curvature's sensitivity"),
            ("algorithms/newton_step.py", 'problem.row_bound**2, n, rho["scores"]', 'square, n, rho["scores"]',
             "a_replaced_row_moves_the_releases_of_two_classes_by_no_more_than_declared[Problem]",
             "scores of slopes as if they were curvatures"),
            (SPEC, "or not spec.rule or spec.l2 or", "or not spec.rule or", "where_none_are_derived_one_line_says_so",
             "intervals of a penalised model"),
            (ENGINE, '.replace(", intervals=False", "")', "", "without_intervals_a_seed_draws_what_it_drew",
             "fits that ask for no intervals draw other noise"),
        )
    ),
    # The one path: agreement of all ways does not catch these.
    Mutant(SPEC, "delta = 0.0  # (ε, 0) is (ε, δ) too", "pass",
           CONTRACT + "a_delta_that_is_given_and_three_classes_are_recorded_too[dp-gd-laplace/two/1e-06]",
           "a pure method states the δ that was asked for"),
    Mutant("own/row_bound.py", "rows *= (factor / np.maximum(1.0, norms))[:, None]", "rows *= factor", ROWS,
           "rows beyond the bound that was found are not shortened"),
    Mutant(SPEC, "rules.accounting(method) if spec.accounting is None", '"paper" if spec.accounting is None',
           RECORDED, "the noise is set by another accounting"),
    Mutant(ENGINE, "[plan.asked], [plan.each], W", "[plan.asked], [plan.whole], W",
           CONTRACT + "all_ways_say_one_thing[objpert-two]", "a model is run by another budget than was planned"),
    Mutant("own/fit.py", "row_bound = row_bounds.parse_mode(row_bound, schema.row_bound)", "row_bound = None",
           CONTRACT + "all_ways_say_one_thing[objpert-two]", "fit takes no row bound"),
    Mutant(SPEC, "else ridged / (spec.n * spec.d)", "else 0.0", RECORDED, "no ridge stands for None"),
    Mutant("own/onnx.py", 'return made("Div", scores, made("Max"', 'return scores or made("Div", scores, made("Max"',
           GRAPH, "the graph shortens no row"),
    Mutant(MODEL, "if self.bound is None or self.window is not None else replace(bare, bound=self.bound)", "", ROWS,
           "a model predicts without the bound of its fit"),
    Mutant(SPEC, "public_settings(name, spec.n, columns, parts[0]) if spec.rule else {}", "{}", RECORDED,
           "the method's public rule is not asked"),
    Mutant(SPEC, "first + model.releases * models", "first + model.releases",
           CONTRACT + "all_ways_say_one_thing[dp-gd-three]", "the plan leaves models out"),
    Mutant("schema/cells.py", "(cells - middle) / half", "(cells - middle) / (2 * half)", GRAPH,
           "numbers are scaled otherwise than the schema says"),
    Mutant(ENGINE, "np.where(y == i, 1.0, -1.0)", "np.where(y == 0, 1.0, -1.0)",
           FACES + "one_against_the_rest_spends_one_budget", "each class's model learns the first"),
    Mutant(CELLS, "self.labels)[:, None] == np.arange(", "self.labels)[:, None] % len(self.labels) == np.arange(",
           GRAPH, "an unknown category is the last one"),
    Mutant(ENGINE, "row_bounds.Releasing(plan.whole,", "row_bounds.Releasing(plan.each,",
           CONTRACT + "the_bound_is_released_within_the_whole_budget",
           "the bound's release is held to one model's budget"),
]  # fmt: skip

RUNS, STATUS = "run/test_store.py::test_", "run/test_outcomes.py::test_"
RUN = [
    Mutant("run/store.py", 'sort_values("_ended", kind="stable").drop_duplicates("key", keep="last")',
           'drop_duplicates("key", keep="last")', RUNS + "a_finished_row_beats_a_failed_one_in_either_order",
           "a later failed row hides a finished one"),
    Mutant("run/store.py", "kept = sorted((last | sound).values())", "kept = sorted(last.values())",
           RUNS + "a_finished_row_beats_a_failed_one_in_either_order",
           "a finished job is run again after a failed row"),
    Mutant("run/store.py", "return {key for key, status in self.statuses.items() if status in outcomes.RESULTS}",
           "return {*self.statuses}",
           RUNS + "failures_are_not_finished", "failed jobs are finished"),
    Mutant("run/store.py", "if named and hashlib.sha256(content).hexdigest()[:DIGEST] != named[1]:", "if False:",
           "run/test_store.py::test_a_flipped_bit_is_seen_wherever_it_is", "the digest of a part is not compared"),
    Mutant("run/store.py", "empty = [name for name in REQUIRED[table] if found[name].null_count]",
           "empty: list[str] = []",
           "run/test_store.py::test_a_part_whose_rows_are_nobodys_is_set_aside", "rows without a key are read"),
    Mutant("run/outcomes.py", "type(error).__mro__ if cls in _RAISED",
           "reversed(type(error).__mro__) if cls in _RAISED",
           STATUS + "an_exception_says_by_its_class_how_a_run_ended", "every exception is a defect"),
    Mutant("run/outcomes.py", "return max(statuses,", "return min(statuses,",
           STATUS + "results_are_what_there_is_to_judge_and_the_worst_word_wins",
           "the best of several outcomes counts"),
    Mutant("run/execute.py", 'row.status, row.private, row.error = "defect", False, result.error', "pass",
           STATUS + "an_overspender_with_columns_of_its_own_is_told_by_the_check",
           "a run that fails its privacy check is done"),
    Mutant("run/execute.py", 'row.objective = float(run.objective[i])', 'row.objective = float(run.objective[0])',
           "run/test_runner.py::test_a_result_does_not_depend_on_its_batch",
           "a batch's rows have the loss of its first"),
    Mutant("run/job.py", '"epsilon": job.epsilon,\n        "settings"', '"settings"',
           "run/test_job.py::test_everything_that_decides_the_result_is_in_the_key", "ε is not in a job's key"),
    Mutant("run/job.py", '"algorithm_version": algorithm.version,\n', "",
           "run/test_job.py::test_repeated_jobs_have_the_keys_they_would_have_by_themselves",
           "an algorithm's version is not in a job's key"),
]  # fmt: skip

CHOICE = "algorithms/test_rules.py::test_"
BOUND, BOUNDED = "own/row_bound.py", "own/test_row_bound.py::test_"
WINDOW, WINDOWED = "own/window.py", "own/test_window.py::test_"
MOVED = WINDOWED + "a_replaced_row_moves_a_release_by_its_sensitivity_and_no_more"
FEW_ROWS = WINDOWED + "few_rows_get_a_window_and_an_intercept_of_their_own"
SAVED_WINDOW = WINDOWED + "a_saved_model_predicts_the_same_states_its_labels_and_cannot_be_edited"
PERSONS, OF_PERSONS = "problems/persons.py", "own/test_persons.py::test_"
POLICY = [
    Mutant("problems/exact.py", "if self.loss.outputs > 1:", "if self.loss.outputs > 99:",
           "serving/test_attacks.py::test_labels_of_many_classes_are_not_released_with_the_noise_of_one",
           "k labels of a row with the noise of one"),
    Mutant(PERSONS, "weights[order] = np.repeat(each, sizes) + (rank < np.repeat(left, sizes))",
           "weights[order] = 1 << self.bits",
           OF_PERSONS + "all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far[gradient]",
           "a row of several weighs 1"),
    Mutant(PERSONS, "weights[order] = np.repeat(each, sizes) + (rank < np.repeat(left, sizes))",
           "weights[order] = (self.count << self.bits) // len(order)",
           OF_PERSONS + "all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far[bounded]",
           "rows weigh 1 over the mean of m"),
    Mutant(PERSONS, "np.unique(self._whose[here], return_inverse=True)",
           "np.arange(len(y)) % self.n, np.arange(len(y))",
           OF_PERSONS + "the_scores_are_squares_of_a_persons_mean_gradient", "the sandwich takes rows for independent"),
    Mutant(PERSONS, "outer(part, 1)) / self.n", "outer(part >> 1, 1)) / self.n",
           OF_PERSONS + "all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far[scores]",
           "half of the scores' distance"),
    Mutant(PERSONS, "sum(one / m for m, one in answers)", "sum(one for m, one in answers)",
           "comparing/test_rows.py::test_a_problem_of_kept_rows_counts_each_person_once",
           "rows of one person weigh 1 each where methods are compared"),
    Mutant("problems/exact.py", "(a * one.derivative(", "(one.derivative(",
           OF_PERSONS + "all_rows_of_one_person_move_a_sum_no_further_than_is_declared_and_as_far[coordinate]",
           "rows of one person count whole in a coordinate"),
    Mutant(PERSONS, "self.n, self._whose = number, codes[order]", "self.n, self._whose = len(order), codes[order]",
           OF_PERSONS + "thirty_rows_more_of_one_person_show_nowhere_but_in_the_noise", "sums are divided by N"),
    Mutant(PERSONS, "np.lexsort((digests, self.codes[known]))", "np.lexsort((self.codes[known],))",
           OF_PERSONS + "a_person_of_more_rows_than_a_weight_can_share_gives_as_many_by_their_content",
           "a row's place in the file decides what it weighs"),
    Mutant("own/spec.py", "return one.persons if spec.unit else bool(one.exact)", "return bool(one.exact)",
           OF_PERSONS + "a_schema_names_the_unit_which_goes_with_the_rows", "auto takes a method without a derivation"),
    Mutant("schema/tables.py", "MARK.__add__", "str", OF_PERSONS + "a_schema_names_the_unit_which_goes_with_the_rows",
           "a person called NA is nobody"),
    Mutant("own/estimators.py", "relation=whole.relation.value, unit=unit", "relation=whole.relation.value",
           OF_PERSONS + "a_budget_is_for_one_unit", "a fit of persons is charged as one of rows"),
    Mutant("own/spec.py", "whole.epsilon - choice * robust", "whole.epsilon", WINDOWED
           + "a_quantile_by_bounds_a_hundred_times_too_wide_is_fitted_in_a_window_that_is_chosen_first",
           "the choice of a window is not paid for"),
    Mutant(WINDOW, "max(1 / m, (2 * room_of(n, way.choice) - 1) / m**2)", "1 / m",
           WINDOWED + "a_column_with_a_long_tail_is_not_cut_where_much_can_be_learnt",
           "rows of one column are cut at 1.4 standard deviations, however much can be learnt"),
    Mutant(WINDOW, "of.weights[order]", "0 * order + (1 << of.bits)",
           OF_PERSONS + "no_release_of_a_window_moves_further_for_any_number_of_rows[1.0-labels0]",
           "rows of one person count whole in a median"),
    Mutant(WINDOW, "of.weights @ rows", "(1 << of.bits) * rows.sum(axis=0)",
           OF_PERSONS + "no_release_of_a_window_moves_further_for_any_number_of_rows[60.0-labels2]",
           "rows of one person count whole in a mean"),
    Mutant(WINDOW, "weights=of.weights * known", "weights=of.weights",
           WINDOWED + "a_row_that_moves_no_model_says_nothing_of_where_the_window_is[target-1000]",
           "rows without a target pull a window to the middle of the bounds"),
    Mutant(WINDOW, "    of = how.of_persons or OfPersons.once(len(y))", "    of = OfPersons.once(len(y))",
           OF_PERSONS + "no_release_of_a_window_moves_further_for_any_number_of_rows[4.5-labels1]",
           "rows of one person count whole in a choice alone"),
    Mutant(WINDOW, "sensitivity=2 * math.sqrt(m) / n", "sensitivity=math.sqrt(m) / n", MOVED, "half of a mean's noise"),
    Mutant(WINDOW, "np.clip(y, self.low, self.high)", "y", MOVED, "a target beyond the window moves its mean further"),
    Mutant(WINDOW, "RowSensitivity(wide, wide), within=float(within))", "RowSensitivity(wide, wide))",
           WINDOWED + "a_median_has_the_law_of_the_exponential_mechanism", "a median is drawn at a lesser ε"),
    Mutant(WINDOW, "np.maximum(less - n, n - upto)", "np.abs(less - n)",
           WINDOWED + "a_median_has_the_law_of_the_exponential_mechanism", "ties count against a median"),
    Mutant(WINDOW, " + whole)[None]", ")[None]",
           WINDOWED + "a_window_has_the_law_of_the_exponential_mechanism_with_its_width_as_measure",
           "a width costs nothing"),
    Mutant(WINDOW, "windows(of.number * choice >= DEEP).T", "windows(len(y) * choice >= DEEP).T",
           WINDOWED + "the_public_numbers_alone_decide_how_narrow_a_window_may_be", "the number of rows shows"),
    Mutant(WINDOW, "gaussian_epsilon(factor * mu * math.sqrt(1 - sum(SHARES.values())), delta)", "epsilon",
           SAVED_WINDOW, "the model gets all of ε beside what was spent"),
    Mutant(WINDOW, "model = gaussian_epsilon(factor * mu * math.sqrt(1 - SHARES[LABEL]), delta)", "model = epsilon",
           FEW_ROWS, "of few rows the model gets all of ε beside the window"),
    Mutant(WINDOW, "max(0.0, of.number - 2 * SURE / choice)", "float(of.number)",
           WINDOWED + "of_few_rows_a_window_without_any_is_never_worth_as_much_as_one_with_all[300]",
           "few rows may get a window that holds none"),
    Mutant(WINDOW, "A[:, 0] *= self.intercept", "A[:, 0] = 0.0", FEW_ROWS, "an intercept is not predicted with"),
    Mutant(ENGINE, "window = window and msgspec.structs.replace(window, bound=found.bound)", "pass",
           FEW_ROWS, "rows are predicted without the bound that they were fitted with"),
    Mutant("own/onnx.py", "float(window.intercept)", "0.0", FEW_ROWS, "a graph measures rows without their intercept"),
    Mutant("own/model.py", "free[:, 0] *= self.window.intercept", "free[:, 0] = 0.0",
           FEW_ROWS, "intercept_ leaves out the model's own"),
    Mutant("own/onnx.py", 'made("Add", made("Div", score, long), window.mean)', 'made("Div", score, long)',
           WINDOWED + "the_graph_clips_at_both_ends_as_the_model_does", "the graph has another middle"),
    Mutant(BOUND, "m / n / (1 if how.budget.relation is Relation.REPLACE_ONE else 2)", "m / n / 2",
           BOUNDED + "noise_by_its_variance", "the release of a rows' bound has half of its noise"),
    Mutant(BOUND, 'np.fmin(np.fmax(np.einsum("ij,ij->i", rows, rows), 0.0), m)', 'np.einsum("ij,ij->i", rows, rows)',
           BOUNDED + "a_row_moves_the_mean_by_no_more_than_the_sensitivity", "a long row moves it by more"),
    Mutant(BOUND, "gaussian_epsilon(mu * math.sqrt(1 - SHARE), delta)", "epsilon",
           BOUNDED + "what_is_left_and_the_release_compose_to_epsilon", "the model gets all of ε beside it"),
    Mutant("algorithms/rules.py", "and side <= self.side", "and side < self.side",
           CHOICE + "a_rule_holds_up_to_and_with_its_last_column", "a rule ends a column early"),
    Mutant("algorithms/rules.py", "and self.pure == (delta == 0)", "and (not self.pure or delta == 0)",
           CHOICE + "no_rule_is_told", "a method that needs δ > 0 is chosen at δ = 0"),
    Mutant("algorithms/rules.py", "and self.l1 in (None, bool(problem.l1))", "",
           CHOICE + "a_method_is_chosen_by_public_numbers_alone", "l1 is not asked about"),
    Mutant("algorithms/rules.py", 'ACCOUNTINGS = ("tight", "rdp"', 'ACCOUNTINGS = ("rdp", "tight"',
           CHOICE + "accounting_is_the_best_there_is_and_delta_one_for_all", "a looser accounting is taken"),
    Mutant(SPEC, "return rules.method(_declared(spec, loss, d, None, None), delta, suits)",
           "return rules.method(_declared(spec, loss, d, None, None), delta if spec.epsilon < 5 else 0.0, suits)",
           FACES + "the_default_follows_the_loss_and_never_epsilon", "auto chooses by ε"),
]  # fmt: skip

SUMS, SEAM, DRAWN = "privacy/exact_sums.py", "privacy/exact_release.py", "privacy/exact_sampling.py"
ON_SUMS, ON_SEAM = "privacy/exact/test_sums.py::test_", "privacy/exact/test_release.py::test_"
ON_DRAWN, BYTES = "privacy/exact/test_sampling.py::test_", "own/test_arithmetic.py::test_"
GRIDS = "problems/test_exact.py::test_"
ALLOCATED = "privacy/accounting/test_allocation.py::test_"
WORLDS = "privacy/exact/test_two_worlds.py::test_"
GUARANTEES = [  # of the privacy code, what no audit sees: each dies by the number that would be wrong
    Mutant("algorithms/output_perturbation.py", "return parts**2 * (d + 1)", "return parts * (d + 1)",
           "algorithms/test_output_perturbation.py::test_the_variance_in_a_direction",
           "the rules of output perturbation take ε to add up in squares"),
    Mutant("algorithms/output_perturbation.py", "epsilon=budget.epsilon / parts", "epsilon=budget.epsilon",
           "algorithms/test_output_perturbation.py::test_all_parts_together_spend_the_budget",
           "each phase spends all of ε"),
    Mutant("algorithms/gradient_descent.py",
           "return max(abs(1 - step * problem.l2), abs(1 - step * problem.objective_smoothness))",
           "return abs(1 - step * problem.l2)",
           "algorithms/test_last_iterate.py::test_no_step_contracts_less_than_it_says",
           "the steepest direction is forgotten in a step's contraction"),
    Mutant("algorithms/newton.py", "return one, math.sqrt(2) * one", "return one, one",
           "algorithms/test_sharper.py::test_two_orthogonal_rows_move_a_clipped_inverse_by_more_than_one_of_them",
           "√2 is dropped from the sensitivity under replace-one"),
    Mutant(ENGINE, "secrets.token_hex(32) if", "secrets.token_hex(1) if",
           "own/test_released_bits.py::test_no_two_of_many_fits_draw_the_same_noise[real]", "256 possible noises"),
    Mutant(ENGINE, "rows[~known] = 0.0", "rows /= np.linalg.norm(rows, axis=1).max()\n    rows[~known] = 0.0",
           CLASSES + "what_is_fitted_of_a_row_does_not_depend_on_other_rows", "rows over the largest norm of the data"),
    Mutant(CELLS, "X /= self.unit", "X /= np.linalg.norm(X, axis=1).max()",
           CLASSES + "what_is_fitted_of_a_row_does_not_depend_on_other_rows", "the same as they are encoded"),
    Mutant(SUMS, "return RowSensitivity(weight * row, 4 * weight * row, l1)",
           "return RowSensitivity(weight * row, 2 * weight * row, l1)",
           ON_SUMS + "the_distances_are_those_of_the_worst_rows_neither_more_nor_less[weighted]",
           "orthogonal rows in place of opposite ones, under replace-one"),
    Mutant(SUMS, "(4 if signed else 2) * one)", "(4 if signed else 1) * one)",
           ON_SUMS + "the_distances_are_those_of_the_worst_rows_neither_more_nor_less[outer]",
           "√2 is dropped from the distance of Gram matrices under replace-one"),
    Mutant(SUMS, "(4 if signed else 2) * one)", "2 * one)",
           ON_SUMS + "the_distances_are_those_of_the_worst_rows_neither_more_nor_less[signed]",
           "curvature of both signs is taken for positive"),
    Mutant(SUMS, "return self.l1 * relation.rows", "return self.l1",
           ON_SUMS + "the_distance_in_sizes_doubles_where_a_row_is_replaced", "Laplace noise for add/remove"),
    Mutant(SUMS, "return self.objective.pull * relation.rows", "return self.objective.pull",
           ON_SUMS + "minimisers_are_apart_by_what_rows_pull_over_the_convexity",
           "minimisers are as far apart as one row pulls, where two differ"),
    Mutant(SEAM, "(distance + 2 * (value.radius", "(distance + (value.radius",
           ON_SEAM + "what_is_near_an_ideal_release_gets_noise_for_both_radii",
           "noise for the distance of one solver's point, where there are two"),
    Mutant(SEAM, "0.0 if term else value.neighbour_distance(self.relation)", "0.0",
           ON_SEAM + "minimisers_without_a_term_are_as_far_apart_as_a_row_can_pull_them",
           "a minimiser without a linear term is taken for a perturbed one"),
    Mutant(SEAM, "return _term_step(std) * math.sqrt(entries) / 2 * UP", "return _term_step(std) / 2 * UP",
           ON_SEAM + "a_linear_term_is_a_rounded_gaussian_whose_rounding_the_minimisers_noise_covers",
           "√d is left out of what rounding the linear term adds"),
    Mutant(SEAM, "return std * entries * exact_sampling.NEAR * UP", "return std * exact_sampling.NEAR * UP",
           ON_SEAM + "a_radial_term_has_its_law_and_what_it_is_off_by_is_covered_too",
           "d is left out of what the radial term is off by"),
    Mutant("privacy/exact_sums.py", "if self.used:", "if False:",
           WORLDS + "a_term_is_used_once", "one linear term for two minimisers"),
    Mutant("privacy/exact_sums.py", "if not event.curvature * (1 + ROUNDING) >= objective.curvature:", "if False:",
           WORLDS + "each_event_holds_what_its_proof_presumes_of_the_objective", "less curvature than a row has"),
    Mutant("privacy/exact_sums.py", "self.sensitivity >= relation.rows * objective.pull", "self.sensitivity >= 0",
           WORLDS + "each_event_holds_what_its_proof_presumes_of_the_objective", "a linear term of any scale"),
    Mutant("privacy/exact_sums.py", "is LogisticPerturbation) and not objective.logistic",
           "is LogisticPerturbation) and False",
           WORLDS + "each_event_holds_what_its_proof_presumes_of_the_objective", "the logistic proof for any loss"),
    Mutant(SEAM, "if np.array_equal(term.drawn, value.objective.term):", "if True:",
           WORLDS + "a_term_hides_no_minimiser_that_was_solved_without_it", "a term hides every minimiser"),
    Mutant(SEAM, "(entries > 1 and noise not in (NORMAL, RADIAL))", "False",
           WORLDS + "laplace_noise_needs_a_distance_in_sizes_which_no_minimiser_has", "ℓ₂ taken for ℓ₁"),
    Mutant(SEAM, "2 * bound(Relation.ADD_REMOVE) if alone else", "bound(self.relation) if alone else",
           WORLDS + "on_a_poisson_sample_under_replace_one_a_row_alone_moves_a_sum_by_half_the_sensitivity",
           "a row alone in a sample counts as two that differ"),
    Mutant("privacy/mechanisms.py", "if len(scores.shape) != 2 or scores.shape[0] != k:", "if False:",
           WORLDS + "one_charge_is_for_one_choice", "many choices for one charge"),
    Mutant("problems/exact.py", "if not 0 < bound < math.inf:", "if False:",
           WORLDS + "bounds_that_are_not_positive_are_refused", "a negative bound, and a negative distance"),
    Mutant("problems/exact.py", "if not isinstance(gram, Gram):", "if False:",
           WORLDS + "the_least_eigenvalue_of_curvature_of_both_signs_is_refused",
           "curvature of both signs in an eigenvalue"),
    Mutant(SEAM, "np.clip(T + self.integers(noise, scale, T.shape), -WITHIN, WITHIN)",
           "T + self.integers(noise, scale, T.shape)",
           ON_SEAM + "what_is_released_stays_within_its_integers_however_far_the_noise_goes",
           "where noise was cut can be seen"),
    Mutant(SEAM, "wrong = not declared >= proved * (1 - ROUNDING)", "wrong = False",
           ON_SEAM + "a_sensitivity_that_is_too_small_is_an_error_not_a_release",
           "an algorithm's own sensitivity is believed"),
    Mutant("privacy/accounting/loss_distribution.py", "return BEYOND + release.failure", "return BEYOND",
           "privacy/accounting/test_sketch.py::test_a_failure_is_taken_off_delta", "what fails costs nothing"),
    Mutant("privacy/accounting/loss_distribution.py", "in (half, half * (1 + ratio))", "in (half, half)",
           "privacy/accounting/test_sketch.py::test_a_sketch_costs_what_its_chi_square_numbers_do",
           "a row moves nothing of a sketch"),
    Mutant("privacy/verify.py", "np.minimum(d + release.failure, 1.0)", "d",
           "privacy/accounting/test_sketch.py::test_a_failure_is_taken_off_delta",
           "the second route forgets a failure"),
    Mutant("privacy/accounting/allocation.py", "masses[1:] += up", "masses[:-1] += up",
           ALLOCATED + "two_steps_are_those_of_the_integral", "a grid keeps less than the mean"),
    Mutant("privacy/accounting/allocation.py", "np.maximum(total - error, 0.0)", "np.maximum(total + error, 0.0)",
           ALLOCATED + "a_sum_is_never_above_the_exact_one_and_as_sharp_as_its_bound",
           "the error of a transform counts as mass"),
    Mutant("privacy/sampling.py", "return int(self.epoch > charged)", "return int(charged < 0)",
           ALLOCATED + "an_epoch_hands_out_each_row_once_and_is_one_entry_of_the_ledger",
           "epochs after the first are free"),
    Mutant("privacy/exact_sampling.py", "below = 2**64 // high * high - 1", "below = 2**64 - 1",
           ON_DRAWN + "integers_are_uniform_where_a_remainder_would_favour_the_small_ones",
           "samples favour the first rows"),
    Mutant("privacy/exact_sampling.py", "np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
           "np.frombuffer(os.urandom(8) * count, dtype=np.uint64)",
           ON_DRAWN + "the_system_gives_new_bits_each_time", "all entries of a release have one noise"),
    Mutant("privacy/exact_sampling.py", "np.argpartition(keys, m - 1)[:m] if",
           "np.argpartition(keys[:-1], m - 1)[:m] if",
           ON_DRAWN + "samples_and_coins_have_their_laws", "the last row is in no sample"),
    Mutant(DRAWN, "out = np.asarray(nearest, dtype=np.int64)", "out = np.asarray(np.trunc(value), dtype=np.int64)",
           ON_DRAWN + "radial_noise_has_its_law_in_one_dimension_and_in_three",
           "noise is cut to integers, not rounded"),
    Mutant(DRAWN, "M, N = Normals(count + 1, bits), Normals(count, bits)\n    value",
           "M, N = Normals(count, bits), Normals(count, bits)\n    value",
           ON_DRAWN + "radial_noise_has_its_law_in_one_dimension_and_in_three",
           "the radius of pure noise is one degree of freedom short"),
    Mutant("problems/exact.py", "np.where(norms <= gamma, np.minimum(norms, tolerance), np.inf), evaluations",
           "np.minimum(norms, tolerance), evaluations",
           GRIDS + "a_solver_that_stops_early_or_says_what_is_not_so_is_not_believed",
           "a minimiser is released whatever its gradient is"),
    Mutant("problems/exact.py", "functools.partial(rounded_derivative, self.loss.derivative, not inside)",
           "functools.partial(rounded_derivative, self.loss.derivative, False)",
           BYTES + "a_loss_of_ones_own_cannot_move_a_sum_further_than_its_row_may",
           "a slope is believed to be within the bound that its loss declares"),
    Mutant("problems/exact.py", "inside = built_in(self.loss) and self.loss.bounded_in_float",
           "inside = self.loss.bounded_in_float",
           BYTES + "a_loss_of_ones_own_cannot_move_a_sum_further_than_its_row_may",
           "any loss is believed that it needs no clipping"),
    Mutant("algorithms/base.py", "if relation is Relation.ADD_REMOVE:\n            return 'a loss",
           "if False:\n            return 'a loss",
           BYTES + "a_loss_of_ones_own_is_covered_where_a_rows_place_does_not_matter",
           "bytes for a loss whose last digit may change with a row's place"),
    Mutant(SEAM, "2 * units / epsilon * UP", "units / epsilon * UP",
           ON_SEAM + "noisy_max_has_the_law_of_its_scale_also_by_sizes", "half the noise of a choice"),
    Mutant(SEAM, "exact_sampling.chosen(T[0], epsilon / (2 * units)", "exact_sampling.chosen(T[0], epsilon / units",
           ON_SEAM + "the_exponential_mechanism_has_its_probabilities", "a choice at twice its ε"),
    Mutant(SEAM, "moved = (declared * (1 + 2 * rounding) + 2 * off) * UP", "moved = declared * UP",
           ON_SEAM + "a_score_that_float64_may_take_further_gets_the_noise_for_it",
           "a score's error in float64 is not covered"),
    Mutant(SEAM, "if not tried <= declared * (1 + ROUNDING + 2 * rounding) + 2 * off:", "if False:",
           ON_SEAM + "choices_need_integers_and_the_sensitivity_that_rows_have",
           "the sensitivity of a score is believed"),
    Mutant("problems/exact.py", "part = _within(A * c[:, None], limits).sum(axis=0)",
           "part = (A * c[:, None]).sum(axis=0)",
           GRIDS + "clipped_coordinates_are_what_integers_say_and_a_rows_part_is_within_its_threshold",
           "coordinates are summed without their clip"),
    Mutant("problems/exact.py", "np.fmin(np.fmax(c, -most, out=c), most, out=c)", "np.clip(c, -most, most, out=c)",
           GRIDS + "a_row_whose_derivative_is_no_number_moves_a_sum_no_further_than_another",
           "a row without a number makes the sum any number"),
    Mutant(SPEC, "(method.row_bound(kind, settings) if method else None)",
           "(method.needs.row_bound(kind) if method else None)",
           BYTES + "the_longest_row_is_never_measured_where_noise_or_steps_rest_on_a_bound",
           "a bound that settings ask for is not declared"),
    Mutant("problems/exact.py", "            return np.array([low])", "            return np.array([low // 2])",
           GRIDS + "the_least_eigenvalue_is_as_near_as_it_says_also_of_a_singular_matrix",
           "an eigenvalue is elsewhere than its noise allows for"),
    Mutant(SUMS, "return self._moved", "return 0.0",
           GRIDS + "the_least_eigenvalue_is_as_near_as_it_says_also_of_a_singular_matrix",
           "an eigenvalue has the noise of its error alone"),
    Mutant("privacy/exact_release.py", "units * self._rows * _one(self._multiplier)", "units * _one(self._multiplier)",
           "privacy/exact/test_release.py::test_noise_times_the_cut_matrix_is_independent_and_no_less_than_rho_asks_for",
           "correlated noise for one use of a row"),
    Mutant("problems/grid.py", "limit * (1 - (d + 2) * 2.0**-23)", "limit * (1 + (d + 2) * 2.0**-21)",
           GRIDS + "float32_puts_the_same_rows_on_the_grid_as_float64",
           "a row is believed to be within its bound where float32 cannot tell"),
    Mutant("problems/grid.py", "np.multiply(out, DOWN, out=out)\n        self._replace(here, out)",
           "np.multiply(out, DOWN, out=out)\n        pass",
           GRIDS + "rows_put_on_the_grid_as_they_are_read_are_those_of_the_copy",
           "a row beyond its bound is read as it was"),
    Mutant("problems/grid.py", "            return self._raw[here]\n        self._replace(here, out)",
           "            return self._raw[here]\n        pass",
           GRIDS + "rows_that_others_stand_for_are_those_in_every_sum", "a row is read in place of what stands for it"),
    Mutant("problems/grid.py", "one_entry_each(X.tocsr()).astype", "X.tocsr().astype",
           GRIDS + "a_sparse_row_with_a_column_twice_is_as_long_as_its_sums",
           "entries of one column are each their sum"),
    Mutant("problems/losses.py", "1 / (4 * h), 1", "1 / (5 * h), 1",
           "problems/test_problem.py::test_a_quantile_loss_is_what_it_declares_and_no_constant_can_be_smaller",
           "a quantile's curvature is larger than its noise is set for"),
    Mutant("privacy/accounting/gaussian.py", "float(-0.5 / ndtri_exp", "float(-0.51 / ndtri_exp",
           "privacy/test_data_budget.py::test_no_test_tells_a_choice_better_than_the_gaussian_that_stands_for_it",
           "a budget charges less than a choice costs"),
    Mutant("privacy/data_budget.py", "(left := self.delta / 2 - first[1])", "(left := self.delta - first[1])",
           "privacy/test_data_budget.py::test_an_analyst_who_chooses_by_what_she_saw_gets_no_more_than_the_budget[1.0-1e-06]",
           "all of δ for one of two ways to count"),
    Mutant("problems/persons.py", "not isinstance(y, np.ndarray) or", "",
           "own/test_persons.py::test_a_column_of_labels_is_read_by_place_and_not_by_its_index",
           "labels of persons read by a column's index"),
    Mutant("privacy/data_budget.py", "if len(charges) == 1 and", "if len(charges) <= 2 and",
           "privacy/test_data_budget.py::test_the_first_fit_costs_its_own_epsilon_and_no_second_is_admitted_by_that",
           "a second fit costs no more than the first"),
    Mutant("own/card.py", "if like is None else", "if like is not None else",
           "own/test_card.py::test_a_card_has_no_score_where_no_simulated_table_was_held_against_a_real_one",
           "a card has a score of tables that are unlike all that were measured"),
    Mutant("problems/losses.py", "(not isinstance(loss, Weighted) or built_in(loss.base))", "True",
           BYTES + "a_loss_of_ones_own_stays_so_with_class_weights", "weights make a loss of one's own ours"),
    Mutant("own/fit.py", 'check = bound == "check" or (', 'check = bound != "rescale" or (',
           "test_api.py::test_a_release_says_nothing_of_values_and_check_rows_says_it_beforehand",
           "a release refuses data that do not fit"),
    Mutant("own/inputs.py", "largest = min(largest, most)", "largest = min(largest, LARGEST_LABEL)",
           "test_api.py::test_a_label_beyond_float32_is_moved_without_a_warning",
           "a warning tells of a label that is infinite in float32"),
]  # fmt: skip

# Where a stranger's method runs: one rule of the server at a time, each with an attack that it would let through.
ATTACK = "serving/test_attacks.py::test_"
REFUSED = ATTACK + "an_attack_is_refused_before_a_row_is_read"
SERVING = [
    Mutant(
        SERVER,
        "if len(self.transcript) >= wire.MOST or self._sent > BYTES or time.monotonic() > self._ends:",
        "if False:",
        ATTACK + "time_and_requests_have_an_end",
        "a run has no end",
    ),
    Mutant(
        SERVER,
        "told = VOID if self.reading else str(error) if known",
        "told = str(error) if True",
        ATTACK + "why_a_request_failed_on_the_rows_is_not_told",
        "a failure on the rows tells of them",
    ),
    Mutant(
        SERVER,
        "if not built_in(problem.loss):",
        "if False:",
        ATTACK + "a_loss_that_is_not_built_in_is_not_computed",
        "a stranger's loss runs where the rows are",
    ),
    Mutant(
        SERVER,
        "if self.transcript:",
        "if False:",
        REFUSED + "[a plan after a release]",
        "a plan is made of what was released",
    ),
    Mutant(
        SERVER,
        "if sorted(map(repr, entries)) != sorted(",
        "if False and sorted(",
        ATTACK + "another_plan_than_that_which_was_checked",
        "the plan that was checked is another",
    ),
    Mutant(
        SERVER,
        "if entries and (error := check(self._planned, self.budget).error):",
        'if entries and (error := ""):',
        ATTACK + "a_plan_beyond_the_budget_has_no_release",
        "a plan has no budget",
    ),
    Mutant(
        SERVER,
        "if over := self.books.unplanned(0):",
        "if over := []:",
        REFUSED + "[twice what is planned]",
        "more is released than was planned",
    ),
    Mutant(
        SERVER,
        "if not isinstance(entry.release, ledger.Gaussian):",
        "if False:",
        REFUSED + "[Laplace noise without a plan]",
        "without a plan other noise passes for Gaussian",
    ),
    Mutant(
        SERVER,
        "if not spent <= self.budget.rho * (1 + 1e-9):",
        "if False:",
        REFUSED + "[more than the budget without a plan]",
        "a run without a plan has no budget",
    ),
    Mutant(
        SERVER,
        'if not self._planned:\n            raise RefusedRequest("a method that samples',
        'if False:\n            raise RefusedRequest("a method that samples',
        REFUSED + "[a sample without a plan]",
        "a sample is drawn without a plan",
    ),
    Mutant(
        SERVER,
        "return self.drawn.pop(rows)",
        "return self.drawn[rows]",
        REFUSED + "[a draw used twice]",
        "two releases are made on one sample",
    ),
    Mutant(
        SERVER,
        "self.drawn = {t: one for t, one in self.drawn.items() if one[0] is not sampler}",
        "pass",
        REFUSED + "[a draw before the last]",
        "a method chooses among its samples",
    ),
    Mutant(
        SERVER,
        "len(np.unique(chosen)) < len(chosen) or ",
        "",
        REFUSED + "[a row twice]",
        "a row that is named twice counts twice at the price of one",
    ),
    Mutant(
        SERVER,
        "if self.term is not None or type(event)",
        "if type(event)",
        REFUSED + "[a term drawn twice]",
        "a run has several terms",
    ),
    Mutant(
        SERVER,
        "if law in (noise.SYMMETRIC, noise.ISOMETRIC) and len(summed.shape) != 3:",
        "if False:",
        REFUSED + "[symmetric noise on a vector]",
        "a row is read before the noise is known to fit",
    ),
    Mutant(
        SERVER,
        "if constants.shape != shape[1:] or not",
        "if not",
        REFUSED + "[many scores for one entry]",
        "one charge pays for many scores",
    ),
    Mutant(
        SEAM,
        "tried = max(tried, float(np.max(each * score.lipschitz)))",
        "pass",
        REFUSED + "[a score that is flat where it is tried]",
        "a score that is flat where it is tried moves elsewhere",
    ),
    Mutant(
        SERVER,
        "if (noise.t + 1 - used[chosen] < separation).any():",
        "if False:",
        REFUSED + "[a row in rounds too near]",
        "a row is in more rounds than the noise is for",
    ),
    Mutant(
        "serving/wire.py",
        "POSITIVE = Annotated[float, msgspec.Meta(ge=1 / FARTHEST, le=FARTHEST)]",
        "POSITIVE = float",
        REFUSED + "[no number for the noise]",
        "noise, bounds, units and scales may be any numbers",
    ),
    Mutant(
        SERVER,
        "if asked.unit != 1.0 or asked.offset is not None:",
        "if False:",
        REFUSED + "[a scaled minimiser]",
        "a minimiser is scaled behind its certificate",
    ),
    Mutant(
        SERVER,
        "len(set(chosen)) < len(chosen) or ",
        "",
        REFUSED + "[a column twice]",
        "a column that is named twice moves further than its bound",
    ),
    Mutant(
        SERVER,
        'if sampler is not None:\n            raise RefusedRequest("an eigenvalue is',
        'if False:\n            raise RefusedRequest("an eigenvalue is',
        REFUSED + "[an eigenvalue of a sample]",
        "an eigenvalue is of a sample",
    ),
    Mutant(
        SERVER,
        'if W.shape != (1, self.problem.d):\n            raise RefusedRequest(f"a model',
        'if False:\n            raise RefusedRequest(f"a model',
        REFUSED + "[a batch of models]",
        "one charge pays for a batch",
    ),
    Mutant(
        SERVER,
        "if error := check(self.books.planned(0), self.budget).error:",
        'if error := "":',
        ATTACK + "a_run_that_released_nothing_has_failed",
        "the ledger is not checked at the end",
    ),
    Mutant(
        SERVER,
        "public = float(np.linalg.norm(b))",
        "public = 0.0",
        REFUSED + "[a public term too far away]",
        "a public term takes the minimiser to where the solver misses it",
    ),
    Mutant(
        SERVER,
        "if W.shape != shape or not np.isfinite(W).all() or asked.rule not in coordinate.RULES:",
        "if asked.rule not in coordinate.RULES:",
        REFUSED + "[a score at a model that is no number]",
        "a score of no numbers chooses by the rows without noise",
    ),
    Mutant(
        "serving/wire.py",
        "WEIGHT = Annotated[float, msgspec.Meta(ge=0, le=FARTHEST)]",
        "WEIGHT = float",
        REFUSED + "[a score of a negative weight]",
        "a score has any weight",
    ),
    Mutant(
        SERVER,
        "if not chosen or len(set(chosen))",
        "if len(set(chosen))",
        REFUSED + "[no columns]",
        "a release has no entry",
    ),
    Mutant(
        SERVER,
        "if sampler is not None or not isinstance(summed, Sum) or",
        "if not isinstance(summed, Sum) or",
        REFUSED + "[a choice on a sample]",
        "a choice is amplified by a sample of which nothing is proved",
    ),
    Mutant(
        SERVER,
        "or not isinstance(summed, Sum) or len(summed.shape) != 2:",
        "or not isinstance(summed, Sum):",
        REFUSED + "[rounds of a matrix]",
        "rounds of a matrix have the sensitivity of a vector",
    ),
    Mutant(
        "serving/wire.py",
        "tolerance: POSITIVE",
        "tolerance: float",
        REFUSED + "[a tolerance that is no number]",
        "a minimiser has no tolerance",
    ),
    Mutant(
        SERVER,
        "if not self.problem.steady or self.problem.l1:",
        "if False:",
        ATTACK + "a_minimiser_that_takes_time_by_the_data",
        "a solver's time tells of the rows",
    ),
    Mutant(
        SERVER,
        "if len(self.rounds) >= OPEN:",
        "if False:",
        REFUSED + "[many correlated noises]",
        "correlated noises have no end",
    ),
    Mutant(
        "problems/exact.py",
        "RowSensitivity(most**2, most**2, most)) / self.n",
        "RowSensitivity(most**2, most**2 // 4, most)) / self.n",
        REFUSED + "[values at half of their sensitivity]",
        "clipped values move by half of what they do",
    ),
    Mutant(SERVER, "if len(self.samplers) >= OPEN:", "if False:", REFUSED + "[many samplers]", "samplers have no end"),
    Mutant(SERVER, "if len(self.states) >= OPEN:", "if False:", REFUSED + "[many models]", "models have no end"),
    Mutant(
        "serving/wire.py",
        "recv_bytes(self.largest)",
        "recv_bytes()",
        ATTACK + "a_frame_that_is_too_large_is_not_read",
        "a frame may have any size",
    ),
    Mutant(
        "serving/wire.py",
        "forbid_unknown_fields=True, kw_only=True, tag_field",
        "kw_only=True, tag_field",
        ATTACK + "a_request_has_exactly_the_fields_of_its_kind",
        "a request may have more fields than its kind",
    ),
    Mutant(
        "serving/wire.py",
        "list[PlannedRelease], msgspec.Meta(max_length=16)",
        "list[PlannedRelease], msgspec.Meta()",
        ATTACK + "a_plan_of_many_kinds_is_refused_at_once",
        "a plan may take the accountants minutes",
    ),
    Mutant(
        "serving/process.py",
        "if not same(channel.read(), asked):",
        "if channel.read() is None:",
        "serving/test_process.py::test_the_repeat_without_rows_finds_what_is_not_asked_by_the_replies",
        "the repeat does not compare what is asked",
    ),
    Mutant(
        "serving/process.py",
        "if same(channel.read(), wire.encoded(wire.DoneRequest(W=wire.numbers(run.W)))):",
        "if channel.read():",
        "serving/test_process.py::test_the_repeat_without_rows_finds_what_is_not_of_the_replies[Clock]",
        "the repeat does not compare what is returned",
    ),
    Mutant(
        "serving/client.py",
        "    sandbox.alone()  # before",
        "    # before",
        "serving/test_process.py::test_a_method_makes_no_process_so_the_limits_on_one_are_limits_on_all",
        "a method makes as many processes as it likes",
    ),
    Mutant(
        "problems/exact.py",
        "if not far <= FARTHEST:",
        "if False:",
        REFUSED + "[a minimiser too far away]",
        "a solver may miss its tolerance on some tables",
    ),
]

WIRE, RANGES = "serving/wire.py", ATTACK + "numbers_are_of_the_ranges_that_the_protocol_has"
PROCESS, RUN_BY = "serving/process.py", "serving/test_process.py::test_"
BOX, IN_BOX = "serving/sandbox.py", "serving/test_sandbox.py::test_"
BITS = "serving/test_bits.py::test_a_served_run_has_the_bits_of_the_run_in_process"
THIRD = "serving/test_third_set.py::test_"
NO_METHOD = RUN_BY + "what_cannot_be_served_is_refused_in_one_line"
APART = "run/test_runner.py::test_code_of_others_runs_in_no_process_in_which_a_built_in_method_does[how0]"
SERVING += [
    Mutant("run/cluster.py", "if foreign or registry.FOREIGN:", "if foreign:", APART,
           "a built-in method runs where code of others has changed it"),
    Mutant("run/cluster.py", "THEIRS if foreign else OURS", "THEIRS", APART,
           "a built-in method runs in the process of code of others"),
    Mutant("run/execute.py", "if os.getpid() != process:", "if False:",
           "run/test_runner.py::test_a_method_that_forks_answers_once", "the row of one job is that of another"),
    Mutant("algorithms/registry.py", "    os._exit = ended\n", "",
           "run/test_runner.py::test_a_file_that_ends_its_process_is_a_mistake_of_its_own",
           "a file ends the command with success"),
    Mutant(SERVER, "raise RefusedRequest(f\"{kind}: {told}\") from None", "continue",
           ATTACK + "a_refusal_ends_the_run_though_the_method_asks_on", "a method asks until one is not refused"),
    Mutant(SERVER, "if W.shape != (1, self.problem.d):\n            raise RefusedRequest(f\"iterates", "if False:\n"
           "            raise RefusedRequest(f\"iterates", ATTACK + "iterates_of_another_shape_are_none",
           "a run has many models"),
    Mutant("algorithms/coordinate.py", "            return math.inf", "            pass",
           THIRD + "a_score_does_not_leave_the_range_of_float64_on_one_of_two_neighbours",
           "a score overflows on one of two neighbours"),
    Mutant("algorithms/coordinate.py", "* 2.0**-1060", "* 0; least = 0.0",
           THIRD + "below_the_range_of_float64_a_jump_of_a_score_is_counted_in", "a square underflows for nothing"),
    Mutant("serving/wire.py", "except ValueError:", "except TypeError:",
           THIRD + "a_shape_whose_product_wraps_round_is_no_array", "a shape ends the receiver by a traceback"),
    Mutant("submitting/checking.py", "with contextlib.suppress(TypeError, ValueError, ZeroDivisionError):",
           "if not isinstance(setting, str) and setting:",
           "submitting/test_third_set.py::test_a_size_in_words_does_not_keep_the_receiver_calibrating",
           "a number in words is no number"),
    Mutant("submitting/checking.py", "max(abs(float(setting)), 1 / abs(float(setting)))", "abs(float(setting))",
           "submitting/test_third_set.py::test_a_size_in_words_does_not_keep_the_receiver_calibrating",
           "a rate of 1e-9 has the receiver calibrate a billion steps"),
    Mutant("submitting/checking.py", ".translate(ALIKE)", "", "submitting/test_third_set.py::"
           "test_a_title_that_looks_like_another_is_that_other", "a title in Greek letters is another's"),
    *(Mutant(BOX, f" {number},", "", THIRD + "a_run_leaves_nothing_with_the_kernel", "a run " + what)
      for number, what in ((248, "leaves a key for the next"), (29, "leaves memory that nobody counts"),
                           (200, "signals the receiver"), (310, "reads the receiver's memory"))),
    Mutant(SERVER, "sampling.AllocationSampler)}", "sampling.AllocationSampler, sampling.WithReplacementSampler)}",
           REFUSED + "[a sampler that is not private]", "samples of which nothing is proved"),
    Mutant(SERVER, "(noise.LAPLACE, ledger.Laplace)", "(noise.LAPLACE, ledger.Gaussian)",
           REFUSED + "[Laplace noise without a plan]", "the ledger has another law than the noise"),
    Mutant(SERVER, " or type(event) not in PREMISES:", ":",
           REFUSED + "[the event of another release as a term]", "a term is charged as another release"),
    Mutant(SERVER, "self.budget.relation.rows * self.problem.lipschitz",
           "self.problem.lipschitz", ATTACK + "honest_requests_pass",
           "a term is of half of its noise"),
    Mutant(WIRE, "multiplier: POSITIVE\n    replaced", "multiplier: float\n    replaced",
           REFUSED + "[no number for the noise]", "a release has any multiplier"),
    Mutant(WIRE, "epsilon: POSITIVE", "epsilon: float", REFUSED + "[a choice at a negative cost]",
           "a choice costs nothing"),
    Mutant(WIRE, "multiplier: POSITIVE\n    label", "multiplier: float\n    label",
           REFUSED + "[rounds without noise]", "rounds have no noise"),
    Mutant(SERVER, "if np.shape(offset) not in ((), summed.shape):", "if False:",
           REFUSED + "[an offset of more rows]", "one release for many models"),
    Mutant(SUMS, "if not 1 / FARTHEST <= unit <= FARTHEST:", "if False:",
           REFUSED + "[a unit at the least denormal]", "a unit at which noise rounds to less"),
    Mutant(SERVER, "if sampler is not None or not isinstance(summed, Sum) or len", "if sampler is not None or len",
           REFUSED + "[a choice of a minimiser]", "choices and rounds of a minimiser"),
    Mutant("problems/exact.py", "if not (np.asarray(thresholds) >= 0).all():", "if False:",
           REFUSED + "[a negative threshold]", "a threshold of a clipped gradient is negative"),
    Mutant(SERVER, "self.seam.record = lambda *given, **named: self._admitted(record(*given, **named))",
           "self.seam.record = lambda *given, **named: record(*given, **named)",
           REFUSED + "[twice what is planned]", "nothing is held against the plan"),
    Mutant(SERVER, " or not ((constants >= 1 / FARTHEST) & (constants <= FARTHEST)).all()", "",
           REFUSED + "[a scale of 0]", "scores are over 0"),
    Mutant(WIRE, "radius: POSITIVE", "radius: float", REFUSED + "[vertices of no ball]", "scores of no numbers"),
    Mutant("privacy/correlated.py", "if self.t == self.steps:", "if False:",
           REFUSED + "[more rounds than paid for]", "rounds go on for ever at the price of some"),
    Mutant(WIRE, "COUNT = Annotated[int, msgspec.Meta(ge=1, le=10**8)]", "COUNT = int", RANGES,
           "a plan has negative counts, which pay for others"),
    Mutant(WIRE, "if sum(one.count for one in self.entries) > MOST:", "if False:", RANGES,
           "a plan takes the accountants hours"),
    Mutant(WIRE, "INDEX = Annotated[int, msgspec.Meta(ge=0, le=2**40)]", "INDEX = int", RANGES,
           "a row is named twice, once from behind"),
    Mutant(WIRE, "steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)]", "steps: COUNT", RANGES,
           "rounds take any memory"),
    Mutant(WIRE, "shape: Annotated[list[INDEX], msgspec.Meta(max_length=DIMENSIONS)]", "shape: list[INDEX]", RANGES,
           "arrays have any number of axes"),
    Mutant(WIRE, "raise PrivacyError(f\"a malformed frame: {one_line(str(error), 200)}\") from None", "return None",
           ATTACK + "a_request_has_exactly_the_fields_of_its_kind", "a malformed frame is taken for a request"),
    Mutant(PROCESS, "        timer.start()\n", "", IN_BOX + "what_hangs_is_ended_and_what_does_not_work_is_no_sandbox",
           "a run has no end by the clock"),
    Mutant(PROCESS, "return OPEN if sandbox.at_hand() is None else SERVED", "return SERVED",
           IN_BOX + "what_hangs_is_ended_and_what_does_not_work_is_no_sandbox", "no sandbox passes for one"),
    Mutant(BOX, 'sys.executable, "-I", __file__]', "\"true\"]",
           IN_BOX + "what_hangs_is_ended_and_what_does_not_work_is_no_sandbox",
           "a sandbox without a filter of calls passes for one"),
    Mutant("problems/losses.py", "(1.0, *np.random.default_rng().uniform(1, far[1] / far[0], FRESH))", "(1.0,)",
           "algorithms/test_needs.py::test_a_spike_between_the_public_points_of_a_check_is_found_by_the_others",
           "a loss knows all points at which it is checked"),
    Mutant("archive/content.py", "if not (self.author or self.library):", "if False:",
           "submitting/test_archives.py::test_an_author_is_words", "a submission has no author"),
    Mutant(BOX, '"--dev", "/dev", "--size", str(WRITTEN), "--tmpfs"', '"--dev", "/dev", "--tmpfs"',
           IN_BOX + "bubblewrap_shares_nothing_and_shows_no_folder_to_write", "a method fills /tmp"),
    *(Mutant(BOX, limit, "", IN_BOX + "every_limit_is_set_and_a_user_s_own_stays", what) for limit, what in (
        ('"CPU": seconds, ', "a method computes for ever"), ('"AS": MEMORY, ', "a method takes all memory"),
        ('"FSIZE": WRITTEN, ', "a method writes a file of any size"),
        (', "NOFILE": FILES', "a method opens any number of files"))),
    Mutant(BOX, "\"--unshare-all\", ", "", IN_BOX + "bubblewrap_shares_nothing_and_shows_no_folder_to_write",
           "a method has a network and other processes"),
    Mutant(BOX, "\"--clearenv\", ", "", IN_BOX + "bubblewrap_shares_nothing_and_shows_no_folder_to_write",
           "a method has the environment"),
    Mutant(BOX, 'one.name == "site-packages" or any', 'True or any',
           IN_BOX + "bubblewrap_shares_nothing_and_shows_no_folder_to_write",
           "a method reads the folder that somebody works in"),
    Mutant("serving/method.py", "if code.source and registry.taken(told.name):", "if False:",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged0-the name dp-gd is taken]",
           "a file has the name of a built-in method"),
    Mutant("serving/wire.py", "    name: SETTING", "    name: WORD",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged14-malformed]",
           "a setting has the name of a method of its table"),
    Mutant("algorithms/registry.py", "return name in BUILTIN | ALIASES | PROBES | WRAPPERS", "return name in BUILTIN",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged17-is taken]",
           "a file has the name of a probe or a wrapper"),
    Mutant(WIRE, 'if given.dtype.kind not in "fiub":', "if False:",
           THIRD + "a_method_gets_nothing_by_what_it_returns_or_asks[Complex-real numbers]",
           "half of what a method returns is left out in silence"),
    Mutant("serving/method.py", "delta = told.delta if ours or told.delta == 0 else rules.DELTA", "delta = told.delta",
           RUN_BY + "a_stranger_s_delta_is_one_of_ours", "a method says which δ it keeps"),
    Mutant("serving/method.py", "if flaw := accounting.get(mode).flaw:", "if flaw := accounting.get(mode).flaw[:0]:",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged9-accounting as-released-code: ]",
           "a method is calibrated by what has a flaw"),
    Mutant(WIRE, "WORD = Annotated[str, msgspec.Meta(max_length=80, pattern=SHOWN)]",
           "WORD = Annotated[str, msgspec.Meta(max_length=80)]",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged3-malformed]",
           "a label is a command to a terminal"),
    Mutant(PROCESS, "with _process(code, limits, wire.DESCRIPTION)", "with _process(code, limits)",
           RUN_BY + "what_a_process_says_of_its_method_is_not_believed[forged6-at most]",
           "every row has megabytes of settings"),
    Mutant("serving/method.py", "if not told.private:", "if False:", NO_METHOD + "[Loud-not private]",
           "a method that claims nothing is served"),
    Mutant("serving/client.py", "if isinstance(method, LibrarySolver):", "if False:",
           NO_METHOD + "[Solver-draws its own noise; run it as trusted code]", "a solver of another library is served"),
]  # fmt: skip

# What the audit in process looks at beside the pair that is thought out, each with a cheat that it would let through.
CLEAN, SIZES, PAIRS = "auditing/clean.py", "auditing/search.py", "auditing/worlds.py"
ELSEWHERE = "auditing/test_cheats_elsewhere.py::test_"
OUTSIDE = ELSEWHERE + "every_place_outside_is_looked_at"
BEYOND, TAPE = ELSEWHERE + "what_goes_beyond_its_process_is_heard", "auditing/transcript.py"
PASSED = ELSEWHERE + "every_cheat_fails_the_audit_by_what_it_does"
AUDITING = [
    Mutant(CLEAN, "problem = replaced_everywhere(pairs) if world else pairs[0].first", "problem = pairs[0].first",
           OUTSIDE, "both processes have one data set"),
    Mutant(CLEAN, "for each in home.rglob(\"*\")}", "for each in ()}", OUTSIDE,
           "files that C code writes are not compared"),
    Mutant(CLEAN, "\"standard error\": done.stderr}", "\"standard error\": b\"\"}", OUTSIDE,
           "standard error is not compared"),
    Mutant(CLEAN, "event.startswith(CALLS)", "False", OUTSIDE, "calls of the system are not compared"),
    Mutant(CLEAN, "\"modules\": changed,", "\"modules\": {},", OUTSIDE, "modules are not compared"),
    Mutant(CLEAN, "if isinstance(each, types.FunctionType) and each.__module__ not in spaces:", "if False:",
           OUTSIDE, "what the method's own file holds is not compared"),
    Mutant(CLEAN, "beyond.append(f\"writes {path}\")", "pass", BEYOND,
           "a file elsewhere is written by both worlds, and read when both are over"),
    Mutant(CLEAN, "atexit._run_exitfuncs()", "pass", BEYOND,
           "a process may do at its end what it likes"),
    Mutant(CLEAN, "for what, calls in BEYOND.items()", "for what, calls in ()", BEYOND,
           "what leaves by the network is not seen"),
    Mutant(CLEAN, "        beyond += [\"starts another process\"] * (_children() > children)\n", "",
           BEYOND, "what another process does is not seen"),
    Mutant(TAPE, "        self._look_at(self.noise)\n", "", PASSED + "[NoiseOfTwoOthers]", "noise is of any generator"),
    Mutant(TAPE, "        self._look_at(self.sampling)\n", "", PASSED + "[ASampleToo]", "samples are of any generator"),
    Mutant("auditing/noise.py", "if rate(event) < 1 and mine.shape == its.shape and", "if False and",
           ELSEWHERE + "samples_that_all_runs_share_are_noticed", "samples that all runs share are not noticed"),
    Mutant(SIZES, "_in_sparse(resized, seed)", "pass", PASSED + "[HalvedInSparse]", "no rows are in a sparse matrix"),
    Mutant(SIZES, "[*grid, ODD, PENALISED]", "[*grid, PENALISED]", PASSED + "[LastBlockIsShort]",
           "blocks are whole at every size"),
    Mutant(SIZES, "[*grid, ODD, PENALISED]", "[*grid, ODD]", PASSED + "[ExactWithARidge]", "no problem has a ridge"),
    Mutant(PAIRS, "return other.on(other.pair.at(n - 1))", "return other", PASSED + "[LastBlockIsShort]",
           "the last row does not differ at other sizes"),
    Mutant("auditing/neighbours.py", "array.flags.writeable = False", "pass",
           PASSED + "[ScalesInPlace]", "a method may change the rows"),
    Mutant(CLEAN, "[*further, *setups, *further]", "[*setups]", OUTSIDE,
           "a data set of which one row differs is run alone"),
    Mutant(CLEAN, "if not report.is_file():", "if report is None:",
           ELSEWHERE + "a_world_that_ends_early_has_not_passed", "a process that ends before its runs do has passed"),
    Mutant(SIZES, "                within(resized.inspect(seed, few=True))\n", "",
           PASSED + "[PlansForMoreInLongRuns]", "other sizes are not inspected"),
    Mutant(SIZES, "at_size(resized, farthest, seed, many=T == STEPS)", "pass",
           PASSED + "[AcrossBeyondThreeColumns]", "the farthest pair is not tried at other sizes"),
    Mutant(SIZES, "(STEPS, 30, 100)", "(STEPS, 5, 6)", PASSED + "[EveryTenthStepExact]",
           "runs of many steps are not looked at"),
    Mutant(PAIRS, "replay.behind = _labels_that_differ(replay, other)",
           "replay.behind = frozenset(one.label for tape in replay.tape.values() for one in tape)",
           PASSED + "[DecoyAndTooLittle]", "hidden noise exempts all that is released"),
    Mutant(SIZES, "for rung in RUNGS:", "for rung in ():", PASSED + "[PowerClip]",
           "no rows shorter than the bound are tried"),
    Mutant(SIZES, "candidate.words in farthest or (many and candidate.many)", "candidate.words in farthest",
           PASSED + "[ScalesOfTheData]", "what shows among many rows is tried among four"),
    Mutant(SIZES, "beside[\"curved\"] = corner, BENT", "pass", PASSED + "[WarmStart]", "no pair has curved others"),
    Mutant(SIZES, "beside = {\"with small labels\": (corner, SHORT)}", "beside = {}",
           PASSED + "[ClippedAtTheLongestLabel]", "all labels are of one size"),
    Mutant(PAIRS, "yield self.compared(self.pair, seed, 1)", "pass", PASSED + "[AloneExact]",
           "no run is of one replicate"),
    Mutant("auditing/runs.py", "if fault := noise.alike(*(run for run, _, _ in sides)):", "if fault := \"\":",
           PASSED + "[OneStream]", "noise that all runs share is not noticed"),
    Mutant("auditing/runs.py", "scores.with_telling_bits(*scores.aligned(first, second))",
           "scores.aligned(first, second)", PASSED + "[DecoyInTheLastBit]", "the last bits are not looked at"),
]  # fmt: skip

# Words where a call was wrong.
WRONG = "test_refused.py::test_"
CALLED = [
    Mutant("errors.py", "if len(known) == len(kinds) and not isinstance(", "if not isinstance(",
           WRONG + "an_error_of_a_call_whose_arguments_have_their_types_is_left_as_it_is",
           "an argument of a type that is not known here is blamed"),
    Mutant("__init__.py", "value.__module__ = __name__", "pass",
           WRONG + "an_error_of_a_call_whose_arguments_have_their_types_is_left_as_it_is",
           "no function goes to another process"),
    Mutant("serving/process.py", "{error}{code.place(channel)}", "{error}",
           WRONG + "a_served_method_that_is_refused_is_told_of_the_line_that_asked",
           "a refusal does not say which line of the method asked"),
    Mutant("files.py", "if path.is_dir():  # told", "if False:  # told",
           WRONG + "a_folder_is_refused_before_the_work_whose_file_it_should_be",
           "a model's file may be a folder until it is written"),
]  # fmt: skip

MUTANTS = [
    *COMPARING,
    *DATASETS,
    *ARCHIVE,
    *SUBMITTING,
    *REPORTING,
    *STUDY,
    *LEADERBOARD,
    *ENCODING,
    *OWN,
    *RUN,
    *POLICY,
    *SERVING,
    *AUDITING,
    *CALLED,
]
MUTANTS += GUARANTEES


def tried(mutants: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with what became of it: NOTICED, SURVIVES, or BROKEN where its test does not run."""
    with _copied(COPIED) as copy:
        tests = list(dict.fromkeys(f"tests/{one.test}" for one in mutants))
        sound = _ended(copy, *tests) == 0 or {test for test in tests if _ended(copy, test) == 0}
        for one in mutants:
            if sound is not True and f"tests/{one.test}" not in sound:
                yield one, BROKEN
                continue
            with _put(copy, one.file, one.mutated(copy)):
                status = _ended(copy, f"tests/{one.test}", keep=False)
            yield one, {0: SURVIVES, 1: NOTICED}.get(status, BROKEN)


@contextlib.contextmanager
def _copied(names: Iterable[str]) -> Iterator[Path]:
    """A temporary copy of these files and folders of the tree."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in names:
            source, leave = ROOT / name, shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / name, ignore=leave) if source.is_dir() else shutil.copy2(source, copy)
        yield copy


@contextlib.contextmanager
def _put(copy: Path, name: str, mutated: str) -> Iterator[None]:
    """The file of the copy as `mutated`, meanwhile."""
    file = copy / "dpbench" / name
    whole, times = file.read_text(encoding="utf-8"), file.stat()
    file.write_text(mutated, encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(whole, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that what was compiled of it holds again


def tried_at_random(count: int, seed: int, begin: int = 0) -> Iterator[tuple[random_mutants.Site, str]]:
    """Mistakes drawn over the whole tree, each with what became of it under the tests that run it; a LEFT one follows.

    begin: how many of them are left out, so that a run that was cut off goes on.
    """
    with _copied(WHOLE) as copy:
        left = random_mutants.drawn(count, seed)[begin:]
        for marks in (COMMON, random_mutants.THOROUGH):
            among = {test for one in left for test in random_mutants.thorough(one.file)} if marks != COMMON else ()
            tests = random_mutants.running(copy, left, marks, sorted(among)) if left else []
            mistakes = [judging.Mistake(one.file, one.mutated(copy), of) for one, of in zip(left, tests, strict=True)]
            survived = []
            for one, mistake, word in zip(left, mistakes, judging.judged(copy, mistakes, marks), strict=True):
                if word == judging.NOTICED or (word == judging.NOWHERE and _noticed(copy, mistake, marks)):
                    yield one, NOTICED
                else:
                    survived.append(one)
                    yield one, LEFT if marks == COMMON else SURVIVES
            left = survived


def _noticed(copy: Path, one: judging.Mistake, marks: str) -> bool:
    """Whether one of its tests, which pass without the mistake, fails in a process that imports it."""
    for step in filter(None, (one.tests[:FIRST], one.tests[FIRST:])):
        with _put(copy, one.file, one.mutated):
            status = _ended(copy, *step, keep=False, marks=marks)
        # A failure, or a name that pytest does not find, is the mistake's if there is none without it.
        if status not in (0, NONE) and _ended(copy, *step, marks=marks) == 0:
            return True
    return False


def _ended(copy: Path, *tests: str, keep: bool = True, marks: str = "") -> int:
    """The exit status of pytest on tests of the copy: 0 passed, 1 failed, else they did not run.

    marks: which tests, as of pytest -m. keep: what is compiled stays in the copy. Of a mutant nothing may stay: a
    compiled file is known by its size and the second it was written in, which those of two mutants can share.
    """
    for name in LOADED:  # once, here: a test's own process begins with them
        importlib.import_module(name)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            os._exit(_pytest(copy, tests, keep, marks))
        finally:
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that its tests left
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU)
    return 1 if late else os.waitstatus_to_exitcode(status)


def _pytest(copy: Path, tests: tuple[str, ...], keep: bool, marks: str) -> int:
    """In a process of its own: pytest, on the copy's modules; a signal ends it after LIMIT."""
    os.setsid()
    signal.alarm(10 * LIMIT)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("dpbench", "tests")]:
        del sys.modules[name]
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path[:] = [str(copy), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    sys.dont_write_bytecode = not keep
    return int(pytest.main(["-q", "-x", "-m", marks, "-p", "no:cacheprovider", *tests]))


def main(words: list[str]) -> int:
    """Try the mutants that one of `words` is in, all without any; 1 where one is not noticed."""
    began, left = time.monotonic(), 0
    if "--random" in words:
        given = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        count, seed, begin = (given.get(option, 0) for option in ("--random", "--seed", "--from"))
        for one, became in tried_at_random(count, seed, begin):
            left += became == SURVIVES
            print(f"{became:8}  {one.shown()}", flush=True)
        count -= begin
        print(f"seed {seed}: {count} mutants, {count - left} noticed, {left} left; {time.monotonic() - began:.0f} s")
        return int(left > 0)
    chosen = [one for one in MUTANTS if not words or any(word in " ".join(one) for word in words)]
    for one, became in tried(chosen):
        left += became != NOTICED
        print(f"{became:8}  {one.file}: {one.breaks}" + (f" ({one.test})" if became != NOTICED else ""), flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - left} noticed, {left} left; {time.monotonic() - began:.0f} s")
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
