"""Archives for tests: parts of one that is sound, changed."""

import hashlib
import json
import zipfile
from types import SimpleNamespace

import pytest

from dpbench.submitting import making

AUDITED = SimpleNamespace(
    epsilon=1.0, runs=100, passed=True, defect="", units={"whole run": "μ"},
    verdicts={"whole run": SimpleNamespace(bound=0.2, claim=0.4)},
)  # fmt: skip


def doctored(made, target, **edits):
    """An archive with members edited (name with _ for . → function of bytes) and a manifest that fits them."""
    with zipfile.ZipFile(made) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    for name, edit in edits.items():
        if name == "manifest":
            edit(manifest)
        elif name == "whole":
            edit(members)
        else:
            members[name.replace("_", ".")] = edit(members[name.replace("_", ".")])
    manifest["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in {"manifest.json": json.dumps(manifest).encode(), **members}.items():
            new.writestr(name, content)
    return target


def rows(edit):
    """An edit of rows.jsonl: of its rows as a list of dicts, in place."""

    def edited(content):
        found = [json.loads(line) for line in content.splitlines()]
        edit(found)
        return b"".join(json.dumps(row).encode() + b"\n" for row in found)

    return edited


def ledger(edit):
    def edited(content):
        found = json.loads(content)
        edit(found)
        return json.dumps(found).encode()

    return edited


def change(i=0, identity=None, **columns):
    def edit(found):
        found[i].update(columns)
        found[i]["identity"].update(identity or {})

    return rows(edit)


def made(reference, out, results, **arguments):
    """What `dpbench.submit` makes of a method under the quick profile, with an audit that was made before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "audit", lambda *audited, **how: [AUDITED])
        return making.submit(reference, profile="quick", out=out, results=results, jobs=1, **arguments)
