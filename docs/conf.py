"""How Sphinx builds the documentation (`make docs`): warnings are errors, nothing is fetched from the network."""

import re
import sys
from pathlib import Path

from dpbench.version import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

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
html_static_path = ["_static"]
html_css_files = ["pages.css"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

default_role = "code"  # `name` in a docstring is code
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Class attributes", "params_style")]
nitpicky = False


CODE = re.compile(r"(`[^`]*`)")
MARKUP = re.compile(r"[|*]|(?<=\w)_(?=\W|$)")
INDENT = " " * 4
GLOSSARY = "glossary"
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


def _link_terms(app, doctree, docname):
    """Make the first mention of each of the glossary's terms on a page a link, and its terms targets."""
    from docutils import nodes

    from dpbench.reporting import glossary

    if docname == GLOSSARY:
        anchors = {one.title: one.anchor for one in glossary.entries()}
        for term in doctree.findall(nodes.term):
            if term.astext() in anchors:
                term["ids"].append(anchors[term.astext()])
        return
    finds, anchors = glossary.terms()
    page = app.builder.get_relative_uri(docname, GLOSSARY)
    seen = {anchor for name, anchor in anchors.items() if name in _titles(doctree)}
    for text in [node for node in doctree.findall(nodes.Text) if _is_prose(node)]:
        parts, at = [], 0
        for found in finds.finditer(text):
            anchor = anchors[found[1].lower()]
            if anchor in seen:
                continue
            seen.add(anchor)
            parts.append(nodes.Text(text[at : found.start()]))
            link = nodes.reference("", "", refuri=f"{page}#{anchor}", internal=True, classes=["term"])
            link += nodes.inline("", found[0])
            parts.append(link)
            at = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[at:])])


TABLE = re.compile(r'<table class="docutils.*?</table>', re.DOTALL)
HEAD = re.compile(r'<th class="head"[^>]*><p>(.*?)</p></th>', re.DOTALL)


def _label_cells(app, pagename, templatename, context, doctree):
    """Give each cell the name of its column: on a phone it stands cell below cell (`_static/pages.css`)."""

    def labelled(found):
        names = [re.sub(r"<[^>]*>", "", name) for name in HEAD.findall(found[0])]
        rows = re.split(r"(?=<tr)", found[0])
        for i, row in enumerate(rows):
            at = iter(names)
            rows[i] = re.sub(r"<td", lambda _: f'<td data-label="{next(at, "")}"', row)  # noqa: B023
        return "".join(rows)

    context["body"] = TABLE.sub(labelled, context.get("body", ""))


def _titles(doctree):
    """What the page is about: it needs no link to that."""
    from docutils import nodes

    return doctree.next_node(nodes.title).astext().lower() if doctree.next_node(nodes.title) else ""


def _is_prose(text):
    """Text in a paragraph, not in code, a link or a table's row of commands."""
    from docutils import nodes

    kinds, node = [], text.parent
    while node is not None:
        kinds.append(node)
        node = node.parent
    outside = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw, nodes.math)
    return any(isinstance(one, nodes.paragraph) for one in kinds) and not any(isinstance(o, outside) for o in kinds)


def _generate(app):
    """Write the pages that are made from the code."""
    import generate  # beside this file

    generate.write(HERE / "generated")


def setup(app):
    """Hook the above into a build."""
    app.connect("builder-inited", _generate)
    app.connect("doctree-resolved", _link_terms)
    app.connect("html-page-context", _label_cells)
    app.connect("autodoc-process-docstring", _as_rst, priority=400)  # before napoleon reads the sections
