import re
from pathlib import Path

from dpbench.reporting import glossary

DOCS = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_every_term_of_the_glossary_is_an_entry():
    bold = re.findall(r"^\*\*(.+)\*\*$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [one.title for one in glossary.entries()] == bold
    anchors = [one.anchor for one in glossary.entries()]
    assert len(set(anchors)) == len(anchors)
    page = glossary.body()
    assert all(f'id="{anchor}"' in page for anchor in anchors)


def test_the_words_that_a_reader_has_to_know_are_explained():
    known = {name for one in glossary.entries() for name in one.names}
    assert {"run", "cell", "artefact", "track", "replicate", "planned ε", "realised ε", "counts as public", "tight",
            "paper", "release", "plan"} <= known  # fmt: skip


def test_the_first_mention_of_a_term_is_a_link_and_code_is_left_alone():
    told = glossary.linked("A run has a Ledger & runs; `ledger` and the planned ε.", "../")
    assert told.count('<a class="term"') == 3
    assert '<a class="term" href="../glossary.html#run">run</a>' in told
    assert '<a class="term" href="../glossary.html#ledger">Ledger</a> &amp; runs' in told
    assert "<code>ledger</code>" in told
    assert '#planned-ε">planned ε</a>' in told
