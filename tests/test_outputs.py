"""What the papers say of the committed rows is what was written down of them, row by row taken away or not."""

import json

import pytest

from tests import outputs


@pytest.mark.thorough
@pytest.mark.parametrize("name", outputs.PAPERS)
def test_a_paper_says_what_it_said(name):
    assert outputs.differences(name, ["all", "half of the settings"]) == []  # the others take as long again, by hand


def test_every_paper_has_its_digests():
    assert sorted(path.stem for path in outputs.KEPT.glob("*.json")) == sorted(outputs.PAPERS)
    assert all(json.loads(path.read_text(encoding="utf-8"))["digests"] for path in outputs.KEPT.glob("*.json"))


def test_what_differs_is_named(tmp_path, monkeypatch):
    kept = {"all/a.md": "1", "all/a.svg": "2", "erratum x": "3", "all/b.csv": "4", "none/a.md": "6"}
    monkeypatch.setattr(outputs, "KEPT", tmp_path)
    found = {"all/a.md": "1", "all/a.svg": "0", "all/c.md": "5"}
    monkeypatch.setattr(outputs, "digests", lambda name, cases, keep: found)
    for version, told in ((outputs.matplotlib.__version__, ["all/a.svg: differs"]), ("3.0", [])):
        text = json.dumps({"matplotlib": version, "digests": kept})
        (tmp_path / "made_up.json").write_text(text, encoding="utf-8")
        assert outputs.differences("made_up", ["all"]) == ["all/c.md: new", "all/b.csv: gone", *told]
