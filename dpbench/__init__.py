"""dpbench: a benchmark of differentially private optimisers.

All that the command line can do is a function here, which lives where its subject does and is loaded on first use: the
file `__init__.pyi` beside this one lists them with their homes. `fit` makes one private model; `PrivateClassifier` and
`PrivateRegressor` have scikit-learn's interface, and `load_model` reads what they saved; `dpbench.schema` says what is
public of a table, `DataBudget` what all fits on it may cost.

`progress` of a function takes a `dpbench.run.runner.Progress` after each batch; `notify` takes one line where there is
something to say (data that are not fetched, settings that were tuned). Both are silent by default: what matters is in
the result.
"""

import copyreg
import importlib
import sys
import types

import lazy_loader

from dpbench.errors import names_arguments
from dpbench.version import DISTRIBUTION, __version__

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["DISTRIBUTION", "__version__"]


def __getattr__(name: str) -> object:
    """What the stub lists, loaded now; a function says which of its arguments is of a wrong type."""
    value = _loaded(name)
    if isinstance(value, types.FunctionType):
        value = names_arguments(value)
        value.__module__ = __name__  # where pickle looks for it
    setattr(sys.modules[__name__], name, value)
    return value


# lazy_loader may make this a module of a kind of its own, which cloudpickle can send to no process of joblib or dask.
if type(sys.modules[__name__]) is not types.ModuleType:
    copyreg.pickle(type(sys.modules[__name__]), lambda module: (importlib.import_module, (module.__name__,)))
