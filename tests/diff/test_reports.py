"""Facts about two reports compared: what is new, fixed and still there, against verdicts that were drawn apart."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.diff.reports import BreachGroup, ReportComparison, compare_reports
from signet_conformance.diff.reports_text import lines as lines_of
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.outcome.identity import Identity
from signet_conformance.outcome.reach import UnreachableParts
from signet_conformance.reports.json_document import JsonReport
from signet_conformance.reports.report_document import Report
from signet_conformance.trace import read
from tests.support.evidence import TRACES
from tests.support.run_endings import ending_of
from tests.support.trace_files import BREACHING, CONFORMING, Line, end, health, recall, start, write

EDITS = 300
SMALL = 24_000
"""Bytes of the recordings that are edited."""
BROKEN = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)
DECIDED = (Verdict.PASS, *BROKEN)


def report(*judged: JudgedTrace, **identity: Any) -> Report:
    """The report of some judged recordings, read back."""
    stream = io.StringIO()
    writer = JsonReport(stream)
    for each in judged:
        writer.add(each, {})
    writer.close(ending_of(judged, 0, identity=Identity(**identity)))
    return Report.model_validate_json(stream.getvalue())


Key = tuple[str, str, str, str]
"""What a breach is known by: requirement, kind, operation, element."""


def names(outcome: ReportComparison, became: BreachGroup) -> set[tuple[str, ...]]:
    """What became this, by requirement, kind, operation and element."""
    return {tuple(change.now.key) for change in outcome.of(became)}


# -- 300 edits


def is_worse(verdict: Verdict, other: Verdict) -> bool:
    """Whether a verdict leads over the other one."""
    return FOLDING_ORDER.index(verdict) < FOLDING_ORDER.index(other)


def kinds(judged: JudgedTrace) -> dict[Key, tuple[Verdict, str]]:
    """What a recording breaches, from the judgements alone: the verdict and the pointer of each breach."""
    found: dict[Key, tuple[Verdict, str]] = {}
    for name, judgement in judged.judgements.items():
        if judgement.verdict in BROKEN:
            for finding in judgement.findings[:200]:
                call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
                operation = "" if call is None else call.operation or ""
                for element in finding.elements or ("",):
                    found.setdefault((name, finding.kind, operation, element), (judgement.verdict, finding.pointer))
    return found


def is_judged(judged: JudgedTrace, key: Key, pointer: str) -> bool:
    """Whether something in a recording was subject to this breach."""
    if judged.judgements[key[0]].verdict not in DECIDED:
        return False
    called = {call.operation for call in judged.recording.calls}
    return not (key[2] and pointer not in ("", "/request/path")) or key[2] in called


def looked_otherwise(judged: JudgedTrace, key: Key) -> bool:
    """Whether calls of its operation left the requirement of a breach undecided, none of them by the same kind."""
    findings = judged.judgements[key[0]].findings
    calls = [(judged.recording.by_seq[finding.exchanges[0]], finding.kind) for finding in findings if finding.exchanges]
    kinds = [kind for call, kind in calls if key[2] in ("", call.operation)]
    return bool(kinds) and key[1] not in kinds


@cache
def recordings() -> list[tuple[Path, list[Line]]]:
    """The smaller of the recordings of real connectors, as lines."""
    files = sorted(file for file in TRACES.glob("*.jsonl") if file.stat().st_size < SMALL)
    return [(file, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]) for file in files]


def edited(lines: list[Line], chance: random.Random) -> list[Line]:
    """A recording in which one thing is otherwise: a member gone or of another value, a call gone or sent twice."""
    calls = [number for number, line in enumerate(lines) if line["kind"] == "exchange"]
    number = chance.choice(calls)
    copy: list[Line] = json.loads(json.dumps(lines))
    body = (copy[number]["request"].get("body") or {}).get("json")
    way = chance.randrange(4)
    if way == 0:
        return [*copy[:number], *copy[number + 1 :]]
    if way == 1 or not isinstance(body, dict) or not body:
        last = max(line.get("seq", 0) for line in copy)
        again = {**json.loads(json.dumps(copy[number])), "seq": last + 1}
        moved = copy[-1].get("t1", copy[-1].get("t", 0.0))
        return [*copy, {**again, "t0": moved + 0.1, "t1": moved + 0.2}]
    member = chance.choice(sorted(body))
    if way == 2:
        del body[member]
    else:
        body[member] = chance.choice([7, "", "another", None])
    return copy


def pairs(folder: Path) -> Iterator[tuple[JudgedTrace, JudgedTrace]]:
    """Recordings as they are, each with one that was edited."""
    chance = random.Random(14)
    whole = [(judge(read(file)), lines) for file, lines in recordings()]
    for number in range(EDITS):
        before, lines = whole[number % len(whole)]
        file = folder / "edited.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in edited(lines, chance)), encoding="utf-8")
        after = judge(read(file))
        yield before, replace(after, trace=replace(after.trace, path=before.trace.path))


def test_every_edit_of_a_real_recording_is_told_exactly(tmp_path: Path) -> None:
    """Of 300 edits: what could have been shown and was not is new, what could be shown and is not is fixed."""
    reports: dict[str, Report] = {}
    changed = 0
    for before, after in pairs(tmp_path):
        old = reports.setdefault(str(before.trace.path), report(before))
        outcome = compare_reports(old, report(after))
        was, now = kinds(before), kinds(after)
        added = {key for key in now if key not in was or is_worse(now[key][0], was[key][0])}
        hidden = {key for key in added if is_worse(before.judgements[key[0]].verdict, now[key][0])}
        fresh = {key for key in added - hidden if is_judged(before, key, now[key][1])}
        gone = was.keys() - now.keys()
        undecided = {key for key in added if before.judgements[key[0]].verdict is Verdict.INCONCLUSIVE}
        fresh |= {key for key in undecided if looked_otherwise(before, key)}
        if not gone:
            called = {call.operation for call in before.recording.calls}
            fresh |= {key for key in added - hidden - undecided if key[2] in called}
        assert names(outcome, BreachGroup.FRESH) == fresh
        assert names(outcome, BreachGroup.FIRST) == added - fresh
        fixed = {key for key in gone if is_judged(after, key, was[key][1])}
        assert names(outcome, BreachGroup.FIXED) == fixed
        assert names(outcome, BreachGroup.UNSEEN) == gone - fixed
        assert names(outcome, BreachGroup.STILL) == now.keys() - added
        changed += was != now
    assert changed > EDITS // 4


# -- the reason


@pytest.fixture
def runs(tmp_path: Path) -> ReportComparison:
    """A run that conformed, and one that forgets the agent of its recalls; the recordings lie beside the reports."""
    outcome = []
    for name, lines in (("old", CONFORMING), ("new", BREACHING)):
        (tmp_path / name).mkdir()
        outcome.append(report(judge(read(write(tmp_path / name / "a.jsonl", lines)))))
    return compare_reports(*outcome, tmp_path / "old", tmp_path / "new")


def test_the_requests_that_changed_are_told(runs: ReportComparison) -> None:
    """A new breach comes with what the recordings of both runs say of the place that its requirement reads."""
    change = next(change for change in runs.of(BreachGroup.FRESH) if change.now.requirement == "SIG-AGENT-002")
    first = change.why[0]
    assert (first.member, first.first.value) == ("request body /agentId", "atlas-agent")
    assert runs.fails


def test_what_is_not_tested_any_more_is_not_mended(tmp_path: Path) -> None:
    """A breach of a call that is no longer made says nothing of the connector."""
    old = judge(read(write(tmp_path / "a.jsonl", [health(), start(), recall(limit=900), end()])))
    new = judge(read(write(tmp_path / "a.jsonl", [health(), start(), end()])))
    outcome = compare_reports(report(old), report(new))
    assert "SIG-REC-002" in {key[0] for key in names(outcome, BreachGroup.UNSEEN)}
    assert "SIG-REC-002" not in {key[0] for key in names(outcome, BreachGroup.FIXED)}


def test_a_report_carries_what_tells_its_run_from_others(tmp_path: Path) -> None:
    """Time, commit, branch, seed and the connector's release are read back as they were written."""
    given = {"created": "2026-11-21T20:17:00Z", "commit": "a" * 40, "branch": "main", "seed": 7, "connector": "1.2.3"}
    made = report(judge(read(write(tmp_path / "a.jsonl", CONFORMING))), **given)
    assert made.run is not None
    assert made.run.model_dump() == given


@pytest.mark.parametrize(
    ("old", "new", "reached", "lost"),
    [
        (
            UnreachableParts(("secret_exec",), {"memory_search": ("aggregate", "who")}),
            UnreachableParts((), {"memory_search": ("who",)}),
            ["memory_search.aggregate", "secret_exec"],
            [],
        ),
        (UnreachableParts(), UnreachableParts(unfillable=("memory_get",)), [], ["memory_get"]),
        (None, UnreachableParts(("secret_exec",)), [], []),
        (
            UnreachableParts(
                version="0.145", later=UnreachableParts(("session_search",), {"memory_search": ("time",)})
            ),
            UnreachableParts(),
            ["memory_search.time", "session_search"],
            [],
        ),
    ],
)  # fmt: skip
def test_what_became_reachable_is_told(
    old: UnreachableParts | None, new: UnreachableParts | None, reached: list[str], lost: list[str]
) -> None:
    """Fields and tools that one report cannot reach and the other can; nothing where one of them does not know."""

    def told(reach: UnreachableParts | None) -> Report:
        stream = io.StringIO()
        JsonReport(stream).close(ending_of((), 0, reach=reach))
        return Report.model_validate_json(stream.getvalue())

    outcome = compare_reports(told(old), told(new))
    assert (outcome.became_reachable, outcome.became_unreachable) == (reached, lost)
    text = " ".join(" ".join(lines_of(outcome, 200)).split())
    assert ("became reachable" in text, "not reachable any more" in text) == (bool(reached), bool(lost))
