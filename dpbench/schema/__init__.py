"""What is public of a table: columns with bounds or categories, the target, and what becomes of a missing cell.

A schema is written down before the data are looked at, as a TOML file or in Python. With it a table becomes numbers by
functions of one row at a time, so nothing is learned from the data on the way.
"""

from dpbench.schema.draft import draft
from dpbench.schema.encode import (
    Encoded,
    Lengths,
    encode,
    encode_target,
    encoded_as,
    lengths_of,
    places,
    shortened,
    spellings,
)
from dpbench.schema.inspect import inspect
from dpbench.schema.schema import Column, Schema, Target, load, word
from dpbench.schema.tables import read_table

__all__ = [
    "Column",
    "Encoded",
    "Lengths",
    "Schema",
    "Target",
    "draft",
    "encode",
    "encode_target",
    "encoded_as",
    "inspect",
    "lengths_of",
    "load",
    "places",
    "read_table",
    "shortened",
    "spellings",
    "word",
]
