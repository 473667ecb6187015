"""How Sphinx builds the documentation (`make docs`): warnings are errors, nothing is fetched from the network."""

import importlib.util
import re
from pathlib import Path

from dpbench.version import __version__

HERE = Path(__file__).parent

project = "dpbench"
copyright = "the dpbench developers"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"dpbench {__version__}"
html_show_sphinx = False
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

default_role = "code"  # `name` in a docstring is code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Class attributes", "params_style")]
nitpicky = False


CODE = re.compile(r"(`[^`]*`)")
MARKUP = re.compile(r"[|*]|(?<=\w)_(?=\W|$)")
INDENT = " " * 4
FIELD = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): (?=\S)")


def _as_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text with Greek letters and norms: what reStructuredText would take for markup is escaped.

    Lines "name: what it is" that describe the fields of a class become a list of definitions.
    """
    result, inside = [], False
    for line in lines:
        line = "".join(
            part if part.startswith("`") else MARKUP.sub(lambda found: "\\" + found[0], part)
            for part in CODE.split(line)
        )
        if what == "class" and (field := FIELD.match(line)):
            result += ["", field[1], INDENT + line[field.end() :]]
            inside = True
        elif what == "class" and inside and line.strip():
            result.append(INDENT + line.strip())
        else:
            result.append(line)
            inside = False
    lines[:] = result


def _generate(app):
    """Write the pages that are made from the code."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(HERE / "generated")


def setup(app):
    """Hook the two above into a build."""
    app.connect("builder-inited", _generate)
    app.connect("autodoc-process-docstring", _as_rst, priority=400)  # before napoleon reads the sections
