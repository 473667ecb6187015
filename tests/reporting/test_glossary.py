import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpbench.reporting import glossary

DOCS = Path(__file__).parents[2] / "docs" / "glossary.md"


@pytest.fixture(autouse=True)
def read_anew():
    """What other tests read before tells nothing of how it is read."""
    glossary.entries.cache_clear()
    glossary.terms.cache_clear()


def test_every_term_of_the_glossary_is_an_entry():
    bold = re.findall(r"^\*\*(.+)\*\*$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [one.title for one in glossary.entries()] == bold
    anchors = [one.anchor for one in glossary.entries()]
    assert len(set(anchors)) == len(anchors)
    assert all(one.title.lower().startswith(one.names[0]) and all(one.names) for one in glossary.entries())
    page = glossary.body()
    assert all(f'id="{anchor}"' in page for anchor in anchors)
    sections = re.findall(r"^## (.+)$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert re.findall(r"<h2>(.+?)</h2>", page) == sections[:-1]  # the last is a table, of names in the code


def test_the_words_that_a_reader_has_to_know_are_explained():
    known = {name for one in glossary.entries() for name in one.names}
    assert {"run", "cell", "artefact", "track", "replicate", "planned ε", "realised ε", "counts as public", "tight",
            "paper", "release", "plan"} <= known  # fmt: skip


def test_the_first_mention_of_a_term_is_a_link_and_code_is_left_alone():
    told = glossary.linked("A run has a Ledger & runs; `ledger` and the planned ε.", "../")
    assert "<a" not in glossary.linked("It differs in one place.", "../")
    assert told.count('<a class="term"') == 3
    assert '<a class="term" href="../glossary.html#run">run</a>' in told
    assert '<a class="term" href="../glossary.html#ledger">Ledger</a> &amp; runs' in told
    assert "<code>ledger</code>" in told
    assert '#planned-ε">planned ε</a>' in told


def test_the_documentation_links_the_first_mention_on_a_page_and_has_the_targets():
    nodes = pytest.importorskip("docutils.nodes")
    utils = pytest.importorskip("docutils.utils")
    spec = importlib.util.spec_from_file_location("conf", DOCS.parent / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    app = SimpleNamespace(builder=SimpleNamespace(get_relative_uri=lambda page, other: f"../{other}.html"))

    page = utils.new_document("a page")
    page += nodes.title("", "The ledger")
    page += nodes.paragraph("", "", nodes.literal("", "run"), nodes.Text(" A run has a ledger; runs and a planned ε."))
    page += nodes.literal_block("", "audit")
    conf._link_terms(app, page, "guides/page")
    links = [(one.astext(), one["refuri"]) for one in page.findall(nodes.reference)]
    assert links == [("run", "../glossary.html#run"), ("planned ε", "../glossary.html#planned-ε")]
    assert page[1].astext() == "run A run has a ledger; runs and a planned ε."

    words = utils.new_document("the glossary")
    words += nodes.definition_list("", nodes.definition_list_item("", nodes.term("", "Planned ε")))
    conf._link_terms(app, words, "glossary")
    assert [one["ids"] for one in words.findall(nodes.term)] == [["planned-ε"]]
