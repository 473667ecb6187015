"""dpbench: a benchmark of differentially private optimisers.

What the command line can do, these functions can: `run_algorithm`, `run_experiment`, `compare`, `report`, `scorecard`,
`audit`, `audit_releases`, `submit`, `check_submission`, `compact`, `board_secret`,
`board_freeze`, `board_versions`, `board_retract`, `merge`, `fetch`, `status`, `standings`, `forget`,
`listing`, `new`, `plan`, `privacy_profile`, `cite`, `diff`, `summarise`, `draft_schema`, `check_data`, `check_rows`,
`statement`, `card`, `export`;
`results` reads the rows; `fit` makes one private model. They are those of `dpbench.api`, loaded on first use.
`PrivateClassifier` and `PrivateRegressor` have scikit-learn's interface, and `load_model` reads what they saved;
`dpbench.schema` says what is public of a table, `DataBudget` what all fits on it may cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpbench.version import DISTRIBUTION, __version__

if TYPE_CHECKING:
    from dpbench.api import *
    from dpbench.estimators import PrivacyWarning, PrivateClassifier, PrivateRegressor, load_model
    from dpbench.privacy.data_budget import DataBudget

__all__ = ["DISTRIBUTION", "DataBudget", "Diagnostics", "Fit", "PrivacyWarning", "PrivateClassifier",
           "PrivateRegressor", "Released", "Runs", "Scorecard", "__version__", "audit", "audit_releases",
           "board_freeze", "board_retract", "board_secret", "board_versions", "card", "check_data", "check_rows",
           "check_submission", "cite", "compact", "compare", "diff", "draft_schema", "export", "fetch", "fit", "forget",
           "listing", "load_model", "merge", "new", "plan", "privacy_profile", "report", "results", "run_algorithm",
           "run_experiment", "scorecard", "standings", "statement", "status", "submit",
           "summarise"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("Priva") or name == "load_model":  # imports scikit-learn
        from dpbench import estimators

        return getattr(estimators, name)
    if name == "DataBudget":
        from dpbench.privacy.data_budget import DataBudget

        return DataBudget
    if name in __all__:
        from dpbench import api

        return getattr(api, name)
    raise AttributeError(f"module 'dpbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
