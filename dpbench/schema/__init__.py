"""What is public of a table: columns with bounds or categories, the target, and what becomes of a missing cell.

A schema is written down before the data are looked at, as a TOML file or in Python. With it a table becomes numbers by
functions of one row at a time (`encoding`, `cells`), and a file a table (`tables`), so nothing is learned from the data
on the way. `look` is for the owner of the data: the draft of a schema, and what a fit would change.
"""

from dpbench.schema.look import draft, inspect
from dpbench.schema.schema import Column, Schema, Target, load, word
from dpbench.schema.tables import read_table

__all__ = ["Column", "Schema", "Target", "draft", "inspect", "load", "read_table", "word"]
