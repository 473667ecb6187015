import platform

import numpy as np

from dpbench.run.execute import environment


def test_the_line_names_interpreter_libraries_and_machine():
    line = environment()
    assert f"Python {platform.python_version()}" in line
    assert f"numpy {np.__version__}" in line
    assert platform.machine() in line
    assert "\n" not in line
