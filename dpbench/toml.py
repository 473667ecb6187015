"""Reading TOML files; `tomllib` came with Python 3.11."""

from __future__ import annotations

import os
import sys
from typing import Any

from dpbench.errors import UserError


def read(source: str | os.PathLike) -> dict[str, Any]:
    """The content of a TOML file; UserError, in one line, if it cannot be read or is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(source, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UserError(f"{source}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: {error}") from None
