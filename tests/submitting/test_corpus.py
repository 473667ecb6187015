"""Archives that a stranger may send: each ends in one line, and none that would do harm is let in."""

import contextlib
import functools
import hashlib
import itertools
import json
import random
import resource
import time
import zipfile

import pytest

import dpbench
from dpbench.archive import content
from dpbench.errors import UserError
from dpbench.run.job import Keys
from dpbench.run.row import RUNS
from dpbench.run.store import Store
from dpbench.submitting import checking, making, replaying
from tests.submitting.archives import change, doctored, ledger, rows


def told(path):
    """Everything that a check says of what is wrong, or that it cannot be read."""
    try:
        return checking.check(path).problems
    except UserError as error:
        return [str(error)]


def manifest(**changes):
    return {"manifest": lambda told: told.update(changes)}


def release(**changes):
    """The first ledger's first release, changed."""
    return {"ledgers_json": ledger(lambda found: found[0]["releases"][0]["release"].update(changes))}


def instead(kind, count=1, **fields):
    """The first ledger with one release of another kind alone."""

    def edit(found):
        found[0]["releases"] = [{"release": {"kind": kind, **fields}, "count": count, "label": "gradient"}]

    return {"ledgers_json": ledger(edit)}


def rekeyed(identity=None, every=True, **columns):
    """Rows whose identity and columns are changed, with keys that fit; ledgers follow their rows."""

    def edit(members):
        found = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
        keys = {}
        for row in found if every else found[:1]:
            old = row["key"]
            row["identity"].update(identity or {})
            row.update(columns)
            row["key"] = keys[old] = Keys(row["identity"])(row["seed"], 0)
        records = json.loads(members["ledgers.json"])
        for one in records:
            one["key"] = keys.get(one["key"], one["key"])
        members["rows.jsonl"] = b"".join(json.dumps(row).encode() + b"\n" for row in found)
        members["ledgers.json"] = json.dumps(records).encode()

    return edit


def raw(name, content):
    return {name: lambda old: content if isinstance(content, bytes) else content(old)}


def without(column):
    return {"rows_jsonl": rows(lambda found: [row.pop(column) for row in found])}


def dropped_timed_of_one(found):
    found[1].pop("timed")
    found[1]["excess"] = 5.0


LONG = "x" * 60_000
CORPUS = {
    # names that look like others, or are none
    "method in Cyrillic": manifest(method="dр-gd"),
    "method in full width": manifest(method="ｄｐ-gd"),
    "method of a built-in": manifest(method="dp-gd"),
    "method of a built-in without its mark": manifest(method="dpgd"),
    "method of a built-in's alias": manifest(method="dp-newton-hess-clip"),
    "method in capitals": manifest(method="Averaged-GD"),
    "method with a path": manifest(method="../../evil"),
    "method with a space": manifest(method="a b"),
    "method of 60,000 characters": manifest(method=LONG),
    "method empty": manifest(method=""),
    # titles and texts that a terminal, a spreadsheet, TeX or a browser would run
    "title with a terminal escape": manifest(title="DP\x1b[2J"),
    "title of the default": manifest(title="The Default (auto)"),
    "title with a bell": manifest(title="DP\x07"),
    "title with TeX": manifest(title="\\input{/etc/passwd}"),
    "title with a formula": manifest(title="=HYPERLINK(1)"),
    "title with a formula by plus": manifest(title="+1+cmd"),
    "title with at": manifest(title="@SUM(1)"),
    "title with HTML": manifest(title="<script>alert(1)</script>"),
    "title with a table's bar": manifest(title="a | b"),
    "title with a line break": manifest(title="a\nb"),
    "title turned round": manifest(title="abc\u202edcba"),
    "title without width": manifest(title="a\u200bb"),
    "title of 60,000 characters": manifest(title=LONG),
    "title of a built-in": manifest(title="DP-GD"),
    "title of a built-in in small letters": manifest(title="dp gd"),
    "environment with an escape": manifest(environment="Python\x1b]0;x\x07"),
    "code version of 60,000 characters": manifest(code_version=LONG),
    "reason with TeX": manifest(left_out={"diabetes-ridge": "\\write18{ls}"}),
    "reason of 60,000 characters": manifest(left_out={"diabetes-ridge": LONG}),
    "a thousand reasons": manifest(left_out={f"p{i}": "not run" for i in range(1000)}),
    "class with a call": manifest(class_name="X()"),
    "library with a path": manifest(library="../x"),
    "profile that is none": manifest(profile="huge"),
    "hash that is none": manifest(source="z" * 16),
    "unknown field": manifest(more=1),
    "format of tomorrow": manifest(format=99),
    # rows
    "no rows": raw("rows_jsonl", b""),
    "empty identities": raw("rows_jsonl", b'{"identity":{}}\n' * 1000),
    "a million lines": raw("rows_jsonl", b"{}\n" * 1_000_000),
    "rows repeated": {"rows_jsonl": rows(lambda found: found.extend(found[:] * 40))},
    "a line of a megabyte": raw("rows_jsonl", lambda old: old + b'{"identity":{"a":"' + b"x" * 1_000_000 + b'"}}\n'),
    "deep identity": raw("rows_jsonl", lambda old: b'{"identity":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}\n"),
    "no timed": without("timed"),
    "no timed in one, unlucky, row": {"rows_jsonl": rows(dropped_timed_of_one)},
    "timed": {"rows_jsonl": change(timed=1)},
    "timed below nothing": {"rows_jsonl": change(timed=-1)},
    "no status": without("status"),
    "status of its own": {"rows_jsonl": change(status="great")},
    "status failed": {"rows_jsonl": change(status="failed")},
    "no seed": without("seed"),
    "seed left out": {"rows_jsonl": rows(lambda found: found.pop())},
    "excess below the optimum": {"rows_jsonl": rows(
        lambda found: [row.update(objective=row["objective"] - row["excess"] - 0.1, excess=-0.1) for row in found])},
    "excess of nothing": {"rows_jsonl": change(excess=0.0)},
    "no excess": {"rows_jsonl": change(excess=None)},
    "excess beyond numbers": raw("rows_jsonl", lambda old: old.replace(b'"excess":', b'"excess":1e999,"x":')),
    "other data in all rows": {"rows_jsonl": rows(lambda found: [row.update(data_sha256="0" * 64) for row in found])},
    "no data": without("data_sha256"),
    "settings beside the key": {"rows_jsonl": change(settings='{"T":50}', identity={"settings": {"T": 100}})},
    "settings that are none": {"rows_jsonl": change(settings="T=50")},
    "a sweep": {"rows_jsonl": change(sweep='{"T":[1,2]}')},
    "not private": {"rows_jsonl": change(private=False)},
    "add-remove": {"rows_jsonl": change(relation="add-remove")},
    "a relation of its own": {"rows_jsonl": change(relation="none at all")},
    "δ of a half": {"rows_jsonl": change(delta=0.5)},
    "ε of nothing": {"rows_jsonl": change(epsilon=0.0)},
    "planned more than asked": {"rows_jsonl": change(epsilon_planned=2.0)},
    "planned nothing": {"rows_jsonl": change(epsilon_planned=None)},
    "notes with a terminal escape": {"rows_jsonl": change(notes="a\x1b[31m")},
    "counts public with HTML": {"rows_jsonl": change(counts_public="<img src=x>")},
    "counts of 1e18": {"rows_jsonl": change(T=10**18)},
    "text for a number": {"rows_jsonl": change(objective="0.1")},
    "no problem of ours": {"rows_jsonl": change(problem="nothing", identity={"problem": "nothing"})},
    "problem with a path": {"rows_jsonl": change(problem="../../etc")},
    "rows that are a list": raw("rows_jsonl", b"[]\n"),
    "bytes that are no text": raw("rows_jsonl", b"\xff\xfe\n"),
    # ledgers
    "no ledger": {"ledgers_json": ledger(list.clear)},
    "an empty ledger": {"ledgers_json": ledger(lambda found: found[0]["releases"].clear())},
    "half of the noise": release(noise_multiplier=1.0),
    "hardly any noise": release(noise_multiplier=1e-300),
    "no noise": release(noise_multiplier=0.0),
    "noise without end": release(noise_multiplier=1e300),
    "noise below nothing": release(noise_multiplier=-1.0),
    "noise in words": release(noise_multiplier="1"),
    "noise that is true": release(noise_multiplier=True),
    "a field more": release(seed=1),
    "a count of nothing": {"ledgers_json": ledger(lambda found: found[0]["releases"][0].update(count=0))},
    "a count of 1e9": {"ledgers_json": ledger(lambda found: found[0]["releases"][0].update(count=10**9))},
    "a count of 1e30": {"ledgers_json": ledger(lambda found: found[0]["releases"][0].update(count=10**30))},
    "a last iterate of 1e9 steps": instead("LastIterate", noise_multiplier=1.0, steps=10**9, contraction=0.5),
    "a last iterate of 1e5 steps": instead("LastIterate", noise_multiplier=1.0, steps=10**5, contraction=0.999999),
    "a sample of 1e18 rows": instead("WithoutReplacement", n=10**18, m=1,
                                     release={"kind": "Gaussian", "noise_multiplier": 1.0}),
    "many small samples": instead("PoissonReplaced", 10**6, rate=1e-9,
                                  release={"kind": "Gaussian", "noise_multiplier": 0.01}),
    "samples in samples": instead("Poisson", rate=0.1, release={"kind": "Poisson", "rate": 0.1, "release": {}}),
    "a million Laplaces": instead("Laplace", 10**6, noise_multiplier=1e3),
    "the best of no runs": instead("BestOfRuns", base=[], law="poisson", mean=5.0),
    "the best of 1e9 runs": instead("BestOfRuns", base=[[{"kind": "Gaussian", "noise_multiplier": 9.0}, 10**9]],
                                    law="poisson", mean=5.0),
    "the best of best of best": instead("BestOfRuns", law="poisson", mean=5.0, base=[[{
        "kind": "BestOfRuns", "law": "poisson", "mean": 5.0, "base": [[{
            "kind": "BestOfRuns", "law": "poisson", "mean": 5.0, "base": [[{
                "kind": "BestOfRuns", "law": "poisson", "mean": 5.0, "base": [[{
                    "kind": "BestOfRuns", "law": "poisson", "mean": 5.0,
                    "base": [[{"kind": "Gaussian", "noise_multiplier": 9.0}, 1]]}, 1]]}, 1]]}, 1]]}, 1]]),
    "a law of its own": instead("BestOfRuns", base=[[{"kind": "Gaussian", "noise_multiplier": 9.0}, 1]], law="always",
                                mean=5.0),
    "a call for a kind": instead("__import__", name="os"),
    "a relation for noise": instead("LogisticPerturbation", noise_multiplier=9.0, curvature=0.1, relation="none"),
    "add/remove objective perturbation": instead("LogisticPerturbation", noise_multiplier=9.0, curvature=0.1,
                                                 relation="add-remove"),
    "a thousand releases": {"ledgers_json": ledger(
        lambda found: found[0].update(releases=found[0]["releases"] * 1000))},
    "ten thousand ledgers": {"ledgers_json": ledger(lambda found: found.extend(found * 10_000))},
    "a ledger of another row": {"ledgers_json": ledger(lambda found: found[0].update(key="0" * 32))},
    "deep ledgers": raw("ledgers_json", b"[" * 100_000),
    # audits
    "no audit": {"audit_json": ledger(list.clear)},
    "an audit that failed": {"audit_json": ledger(lambda found: found[0].update(passed=False))},
    "an audit with a bound above": {"audit_json": ledger(lambda found: found[0]["tests"][0].update(bound=9.0))},
    "an audit without a test": {"audit_json": ledger(lambda found: found[0]["tests"].clear())},
    "an audit at another ε": {"audit_json": ledger(lambda found: found[0].update(epsilon=1e9))},
    "an audit's claim above its ε": {"audit_json": ledger(lambda found: found[0]["tests"][0].update(claim=50.0))},
    "an audit's bound below nothing": {"audit_json": ledger(lambda found: found[0]["tests"][0].update(bound=-1.0))},
    "a class that is not in the code": manifest(class_name="Another"),
    "code that is no Python": {
        "whole": lambda members: members.update({"method.py": b"(" * 10_000}),
    },
    "another accounting than its key has": {"rows_jsonl": change(accounting="basic")},
    "rows of another experiment": {"rows_jsonl": change(experiment="second_order")},
    "an audit of no run": {"audit_json": ledger(lambda found: found[0].update(runs=0))},
    # the code
    "other code": {"method_py": lambda code: code + b"# changed\n"},
    "no code": raw("method_py", b""),
}  # fmt: skip


def test_the_corpus_is_large_enough():
    assert len(CORPUS) >= 60


@pytest.mark.thorough_but(
    "method with a path",
    "title with TeX",
    "unknown field",
    "rows repeated",
    "half of the noise",
    "many small samples",
    "settings beside the key",
    "an audit with a bound above",
    "other code",
    "deep identity",
)
@pytest.mark.parametrize("what", CORPUS)
def test_no_harmful_archive_is_let_in(made, tmp_path, monkeypatch, what):
    monkeypatch.setattr(checking, "SECONDS", 1)
    known = functools.cache(checking.check)  # merging asks for the same again
    monkeypatch.setattr(checking, "check", lambda path, rerun=None: known(path))
    path = doctored(made, tmp_path / "forged.zip", **CORPUS[what])
    started = time.process_time()
    found = told(path)
    assert found, "let in"
    assert time.process_time() - started < 10
    assert all("\n" not in line and line.isprintable() and len(line) < 600 for line in found), found
    with pytest.raises(UserError):
        dpbench.merge(path, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (rekeyed(epsilon=10.0, identity={"epsilon": 10.0}), "no cell of the quick profile"),
        (rekeyed(identity={"settings": {"T": 50}}, settings='{"T":50}', every=False), "several settings"),
        (rekeyed(identity={"data_version": 99}), "data_version is 99 in its key"),
        (rekeyed(identity={"source": "0" * 16}), "source is '0000000000000000' in its key"),
        (rekeyed(identity={"algorithm": "dp-gd"}), "algorithm is 'dp-gd' in its key"),
    ],
)
def test_keys_that_are_made_to_fit_hide_nothing(made, tmp_path, edit, found):
    path = doctored(made, tmp_path / "forged.zip", whole=edit)
    assert any(found in line for line in told(path)), told(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "LogisticPerturbation", "noise_multiplier": 5.5, "curvature": 0.1, "relation": "replace-one"},
        {"kind": "ConvexPerturbation", "noise_multiplier": 6.0, "curvature": 0.1, "relation": "replace-one"},
    ],
)
def test_an_honest_method_with_objective_perturbation_is_sound(made, tmp_path, entry):
    from dpbench.privacy.ledger import Relation
    from dpbench.privacy.verify import spent

    submission = content.read_submission(made)
    row = submission.rows[0]
    one = content.ReleaseCount(entry, 1, "objective")
    cost = spent(content.composition_of([one]), row.delta, Relation.REPLACE_ONE).epsilon
    assert 0.5 < cost <= 1.0

    def edit(members):
        rows(lambda found: [row.update(epsilon_planned=cost) for row in found])
        found = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
        members["rows.jsonl"] = b"".join(json.dumps(row | {"epsilon_planned": cost}).encode() + b"\n" for row in found)
        records = json.loads(members["ledgers.json"])
        records[0]["releases"] = [{"release": entry, "count": 1, "label": "objective"}]
        members["ledgers.json"] = json.dumps(records).encode()

    assert told(doctored(made, tmp_path / "honest.zip", whole=edit)) == []


VALUES = (1e300, -1, 2, 0.5, "abc", "", None, [], {}, "\u202e", "=1+1", ...)  # ...: left out
WORDS = {  # words of the author's, of the machine, or of a reason: shown as such, and none of them gives a place
    "manifest.title", "manifest.code_version", "manifest.environment", "manifest.library", "manifest.author",
    "manifest.licence", "manifest.hardware", "ledgers.0.releases.0.label", "audit.0.tests.0.test",
    *(f"manifest.left_out.{problem}" for problem in
      ("breast-cancer-ridge", "diabetes-ridge", "gen-friedman", "gen-linear-tiny", "gen-small", "gen-tiny")),
    "rows.0.error", "rows.0.code_version", "rows.0.environment", "rows.0.notes",
}  # fmt: skip
OPTIONAL = {"rows.0.experiment", "rows.0.accounting"}  # may be left out, not changed
NUMBERS = {"audit.0.runs", "audit.0.tests.0.bound", "audit.0.tests.0.claim"}  # as stated; the receiver has an audit


def places_of(value, at):
    """The path of every value in a document, of a list's first alone."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, one in inside:
        yield from places_of(one, (*at, name))


def with_value(document, at, value):
    """The document with another value at a path, or without it."""
    if not at:
        return value
    found = json.loads(json.dumps(document))
    there = found
    for name in at[:-1]:
        there = there[name]
    if value is ...:
        del there[at[-1]]
    else:
        there[at[-1]] = value
    return found


@pytest.mark.thorough
def test_a_changed_value_that_is_let_in_gives_no_place(made, tmp_path):
    """Every value of an archive, and every column that it leaves out, with a dozen others in its place.

    Of 10,000 archives with random changes 467 passed the check. What they can have changed is what passes here, as JSON
    that decodes to the same says the same:

    - words: titles, reasons, versions, hardware, notes. They are shown as the author's, within an alphabet;
    - columns that say again what a key or a setting says, left out;
    - what the archive says of its own audit, within what a bound and a claim can be: the receiver makes another;
    - `counts_public`, what a method takes unpaid: compared with what its code says where it is run again;
    - numbers that nobody checks, as accuracy, ε as other accountants have it, and scores on rows held out: they are not
      kept (`replaying.KEPT`).

    Objectives, excess losses, ε, δ, seeds, settings, data, ledgers and status are in none of them. What was found so
    and mended: `accounting` and `experiment` against the key, an audit at any ε or with a claim above it, a class
    that is not in the code, and numbers that were kept without a check.
    """
    with zipfile.ZipFile(made) as old:
        members = {name: old.read(name) for name in old.namelist()}
    documents = {name.partition(".")[0]: json.loads(members[name]) for name in members if name.endswith(".json")}
    documents["rows"] = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
    del documents["manifest"]["sha256"]
    let_in = {}
    for name, document in documents.items():
        paths = list(places_of(document, ()))
        if name == "rows":
            paths += [(0, column) for column in RUNS if column not in document[0]]
        for at, value in itertools.product(paths, VALUES):
            try:
                other = with_value(document, at, value)
            except KeyError:
                continue
            if other == document:
                continue
            parts = {
                "manifest": {"manifest": lambda given, other=other: (given.clear(), given.update(other))},
                "rows": {
                    "rows_jsonl": lambda _, other=other: b"".join(json.dumps(row).encode() + b"\n" for row in other)
                },
            }.get(name, {f"{name}_json": lambda _, other=other: json.dumps(other).encode()})
            try:
                path = doctored(made, tmp_path / "other.zip", **parts)
            except (TypeError, AttributeError, ValueError):  # no manifest at all
                continue
            with contextlib.suppress(UserError):
                if not checking._examined(content.read_submission(path))[0]:  # without the fork that bounds it
                    let_in.setdefault(".".join(map(str, (name, *at))), []).append(value)
    unkept = {f"rows.0.{column}" for column in RUNS if column not in replaying.KEPT}
    assert let_in.keys() <= WORDS | OPTIONAL | NUMBERS | unkept | {"rows.0.counts_public"}
    for name in OPTIONAL:
        assert let_in.get(name, [...])[-1] is ...
        assert all(value in (None, ...) for value in let_in.get(name, []))
    assert set(let_in["audit.0.tests.0.claim"]) <= {0.5}
    assert set(let_in["audit.0.runs"]) <= {2}


def test_what_nobody_checked_is_not_kept(made, tmp_path):
    stated = doctored(
        made, tmp_path / "other.zip", rows_jsonl=change(accuracy=1e300, held_loss=-1.0, epsilon_accounted=0.1)
    )
    folder = dpbench.merge(stated, results=tmp_path / "results")
    rows = Store(folder.parent.parent, folder.parent.name, folder.name).runs()
    assert rows[["accuracy", "held_loss", "epsilon_accounted", "gradient_norm"]].isna().all(axis=None)
    assert rows[["objective", "excess", "epsilon_planned"]].notna().all(axis=None)


def mutated(content, chance):
    """Bytes with one change that a careless or a hostile hand makes."""
    at = chance.randrange(len(content) + 1)
    until = min(len(content), at + chance.choice((1, 2, 8, 64, 1024)))
    kind = chance.randrange(8)
    if kind == 0:
        return content[:at] + content[until:]
    if kind == 1:
        return content[:at] + content[at:until] * chance.choice((2, 50)) + content[until:]
    if kind == 2:
        return content[:at] + bytes(chance.randrange(256) for _ in range(until - at)) + content[until:]
    if kind == 3:
        return content[:at]
    tokens = [b"1e999", b"-1", b"0", b"1e9", b"999999999999999999999", b"null", b"true", b"[]", b"{}", b'""',
              b'"\\u202e"', b"NaN", b"[[[[[[[[", b"1e-300", b'"=1+1"', b'"\\u001b[2J"']  # fmt: skip
    numbers = [i for i, byte in enumerate(content) if chr(byte) in ":[,"]
    if not numbers:
        return content + chance.choice(tokens)
    start = chance.choice(numbers) + 1
    end = next((i for i in range(start, len(content)) if chr(content[i]) in ",]}"), len(content))
    return content[:start] + chance.choice(tokens) + content[end:]


def used():
    """(seconds of the processor, largest memory in bytes) of this process and of the checks that it forked."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both), max(one.ru_maxrss for one in both) * 1024


def fuzz(made, folder, count, seed):
    """Mutants of the archive, each of which ends in one line: how many were sound, the slowest's seconds, more memory.

    Seconds are of the processor: what else runs on the machine does not count.
    """
    chance = random.Random(seed)
    with zipfile.ZipFile(made) as old:
        sound = {name: old.read(name) for name in old.namelist()}
    names = [name for name in sound if name != "method.py"]
    slowest, sound_ones, (_, before) = 0.0, 0, used()
    for i in range(count):
        members = dict(sound)
        for _ in range(chance.choice((1, 1, 1, 3))):
            name = chance.choice(names)
            members[name] = mutated(members[name], chance)
        if chance.random() < 0.8:  # a manifest that fits
            try:
                manifest = json.loads(members["manifest.json"])
                hashes = {n: hashlib.sha256(c).hexdigest() for n, c in members.items() if n != "manifest.json"}
                manifest["sha256"] = hashes
                members["manifest.json"] = json.dumps(manifest).encode()
            except (ValueError, TypeError, RecursionError):
                pass
        path = folder / f"{i}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name, content in members.items():
                new.writestr(name, content)
        content = path.read_bytes()
        if chance.random() < 0.1:
            path.write_bytes(mutated(content, chance))
        started = used()[0]
        found = told(path)
        slowest = max(slowest, used()[0] - started)
        sound_ones += not found
        assert all("\n" not in line and line.isprintable() for line in found), (seed, i, found)
        assert not any("Traceback" in line for line in found)
        path.unlink()
    return sound_ones, slowest, used()[1] - before


@pytest.mark.thorough
def test_a_fuzz_of_mutants_ends_each_in_a_line(made, tmp_path):
    sound_ones, _, memory = fuzz(made, tmp_path, 200, 34)
    assert sound_ones < 100  # a mutant may change what says nothing, as a title
    assert memory < 1 << 30


@pytest.mark.slow
def test_a_long_fuzz_of_mutants_ends_each_in_a_line_within_ten_seconds_and_a_gigabyte(made, tmp_path):
    sound_ones, slowest, memory = fuzz(made, tmp_path, 10_000, 35)
    print(
        f"10,000 mutants: {sound_ones} sound, the slowest {slowest:.2f} s, memory {memory / 1e6:.0f} MB above the start"
    )
    assert slowest < 10
    assert memory < 1 << 30


def test_code_that_is_there_under_another_name_is_refused_before_it_is_run_again(made, tmp_path):
    making.add(made, tmp_path / "results")
    copied = doctored(made, tmp_path / "copied.zip", **manifest(method="other-gd"))
    with pytest.raises(UserError, match="its code is that of averaged-gd, but for names and comments"):
        making.add(copied, tmp_path / "results", rerun=lambda _: pytest.fail("it was run"))
    with pytest.raises(UserError, match="is there already; --replace takes the new one"):
        making.add(made, tmp_path / "results", rerun=lambda _: pytest.fail("it was run"))


def test_two_classes_of_a_file_are_two_methods_and_a_copy_of_one_is_none():
    two = b"class One:\n    x = 1\n\nclass Two:\n    x = 2\n"
    assert making.code_hash(two, "One") != making.code_hash(two, "Two")
    again = b"# mine\nclass First:\n    x = 1\n\nclass Second:\n    x = 2\n"
    assert making.code_hash(again, "First") == making.code_hash(two, "One")
    assert making.code_hash(b"class One:\n    x = 1\n\nclass Two:\n    x = 1\n", "One") == making.code_hash(
        b"class One:\n    x = 1\n\nclass Two:\n    x = 1\n", "Two"
    )
