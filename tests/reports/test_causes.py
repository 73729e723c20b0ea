"""Facts about causes: which breaches are one, what is counted, and that the terminal says enough to mend them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import Verdict
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.reports.cause_text import CauseText
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.trace import read
from tests.support.command_line import Invoke
from tests.support.evidence import TRACES
from tests.support.trace_files import BREACHING, Line, end, health, post, recall, start, write

KNOWN = {"SIG-AGENT-001": "ada: next release", "SIG-AGENT-002": "ada: next release"}
FORGOTTEN = "agentId"


def judged(path: Path, lines: list[Line]) -> JudgedTrace:
    """A judged trace of these lines."""
    return judge(read(write(path, lines)))


def causes(*traces: JudgedTrace) -> list[Cause]:
    """The causes of some traces."""
    gathered = Causes()
    for trace in traces:
        gathered.add(trace, {})
    return list(gathered.connector())


def of(listed: list[Cause], requirement: str) -> Cause:
    """The cause that a requirement is part of."""
    (cause,) = [cause for cause in listed if requirement in cause.requirements]
    return cause


def test_one_missing_member_is_one_cause_whoever_asks_for_it(tmp_path: Path) -> None:
    """The agent that a recall lacks breaches two requirements, and is to be mended once."""
    cause = of(causes(judged(tmp_path / "a.jsonl", BREACHING)), "SIG-AGENT-002")
    assert cause.requirements == ["SIG-AGENT-001", "SIG-AGENT-002"]
    assert (cause.calls, cause.sessions, cause.traces) == (Counter({"memory-recall": 2}), 1, 1)


def test_one_missing_member_is_one_cause_whichever_calls_lack_it(tmp_path: Path) -> None:
    """Start and end without harness breach a requirement each, and are counted by operation."""
    lines = [health(), start(), end(), start(sessionKey="s-2"), end(sessionKey="s-2")]
    for line in lines[1:]:
        del line["request"]["body"]["json"]["harness"]
    cause = of(causes(judged(tmp_path / "a.jsonl", lines)), "SIG-START-001")
    assert cause.requirements == ["SIG-START-001", "SIG-END-001"]
    assert (cause.calls, cause.sessions) == (Counter({"session-start": 2, "session-end": 2}), 2)


def test_one_wrong_value_is_one_cause(tmp_path: Path) -> None:
    """A number in place of the harness is refused by a requirement of each hook, in the same words."""
    cause = of(causes(judged(tmp_path / "a.jsonl", [health(), start(harness=7), end(harness=7)])), "SIG-END-001")
    assert cause.requirements == ["SIG-START-001", "SIG-END-001"]


def test_what_is_wrong_at_two_places_is_two_causes(tmp_path: Path) -> None:
    """A member that is absent and another that is wrong have a block each."""
    line = start(project="relative")
    del line["request"]["body"]["json"]["harness"]
    listed = causes(judged(tmp_path / "a.jsonl", [health(), line, end()]))
    assert of(listed, "SIG-START-001").requirements == ["SIG-START-001"]
    assert of(listed, "SIG-START-003").requirements == ["SIG-START-003"]


def test_the_smallest_trace_is_the_example(tmp_path: Path) -> None:
    """Whatever the order of the traces, the one with the fewest exchanges stands for the cause."""
    small = judged(tmp_path / "small.jsonl", [health(), start(), recall(), end()])
    large = judged(tmp_path / "large.jsonl", BREACHING)
    for traces in ((small, large), (large, small)):
        cause = of(causes(*traces), "SIG-AGENT-002")
        assert (cause.first.file, cause.traces, cause.calls.total()) == (str(tmp_path / "small.jsonl"), 2, 3)


@pytest.mark.parametrize("known_in", [0, 1, 2])
def test_a_cause_is_known_only_where_every_failure_of_it_is(tmp_path: Path, known_in: int) -> None:
    """One trace whose failure is not known leaves the cause to be shown."""
    trace = judged(tmp_path / "a.jsonl", BREACHING)
    gathered = Causes()
    for number in range(2):
        gathered.add(trace, KNOWN if number < known_in else {})
    assert of(list(gathered.connector()), "SIG-AGENT-001").is_known is (known_in == 2)


def test_the_json_report_counts_as_the_terminal_does(invoke: Invoke, tmp_path: Path) -> None:
    """Its causes hold traces, sessions and calls, and the example's file, line and exchange."""
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", BREACHING)
    report = json.loads(invoke("check", "a.jsonl", "b.jsonl", "--json").stdout)
    (cause,) = [cause for cause in report["causes"] if cause["requirement"] == "SIG-AGENT-001"]
    assert cause["also"] == [{"requirement": "SIG-AGENT-002", "verdict": "FAIL"}]
    assert (cause["traces"], cause["of"], cause["sessions"], cause["calls"]) == (2, 2, 2, {"memory-recall": 4})
    assert [(p["file"], p["line"], p["exchange"]) for p in cause["problems"]] == [("a.jsonl", 4, 3)]


# -- the promise on length, and that what is left can be acted on


def nineteen(folder: Path) -> Path:
    """Recordings of 19 scenarios of a connector that forgets one member wherever it belongs."""
    folder.mkdir()
    for number in range(19):
        prompts = [
            post(
                "/api/hooks/user-prompt-submit",
                {"harness": "openclaw", "sessionKey": f"s-{number}", "userMessage": f"Which database, {turn}?"},
                answer={"inject": "", "memoryCount": 0, "sessionKnown": True},
            )
            for turn in range(number)
        ]
        lines = [health(), start(sessionKey=f"s-{number}"), *prompts, recall(sessionKey=f"s-{number}")]
        lines += [end(sessionKey=f"s-{number}")]
        for line in lines[1:]:
            line["request"]["body"]["json"].pop(FORGOTTEN, None)
        mark = {"kind": "mark", "t": 0.5, "name": "scenario", "data": {"name": f"scenario-{number}"}}
        write(folder / f"{number:02}.jsonl", [mark, *lines])
    return folder


def test_one_forgotten_member_fits_a_screen_and_can_be_mended_by_what_it_says(invoke: Invoke, tmp_path: Path) -> None:
    """Whoever reads the output alone finds member, value, calls and a command, and the same command then passes."""
    folder = nineteen(tmp_path / "runs")
    text = invoke("check", "runs").stdout
    assert len(text.splitlines()) <= 40
    flat = " ".join(text.split())
    assert "in 19 of 19 scenarios, 19 sessions, 228 calls" in flat
    assert text.count("FAIL SIG-AGENT") == 1
    pointer = re.search(r"^ +at +(\S+)$", text, re.MULTILINE)
    expected = re.search(r"^ +expected +(\S+)$", text, re.MULTILINE)
    place = re.search(r"^ +in +(\S+):(\d+)$", text, re.MULTILINE)
    counted = re.search(r"calls \((.*?)\)", flat)
    assert pointer is not None
    assert expected is not None
    assert place is not None
    assert counted is not None
    line = json.loads(Path(place[1]).read_text(encoding="utf-8").splitlines()[int(place[2]) - 1])
    *way, member = pointer[1].split("/")[1:]
    body: dict[str, Any] = line
    for name in way:
        body = body[name]
    assert member not in body
    operations = dict(part.rsplit(" ", 1) for part in counted[1].split(", "))
    assert set(operations) == {"session-start", "user-prompt-submit", "memory-recall", "session-end"}
    for file in folder.iterdir():
        exchanges = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for exchange in exchanges:
            if exchange["kind"] == "exchange" and exchange["request"]["body"] is not None:
                exchange["request"]["body"]["json"][member] = expected[1]
        file.write_text("".join(f"{json.dumps(exchange)}\n" for exchange in exchanges), encoding="utf-8")
    again = invoke("check", "runs")
    assert (again.exit_code, "FAIL SIG-AGENT" in again.stdout) == (0, False)


def many() -> list[JudgedTrace]:
    """229 judged recordings: those of the evidence, and the same without a member each."""
    files = sorted(TRACES.glob("*.jsonl"))
    members = ("agentId", "harness", "sessionKey", "userMessage", "transcript", "project")
    judged_once = []
    for number, file in enumerate(files * 2):
        trace = read(file)
        if number >= len(files):
            member = members[number % len(members)]
            for exchange in trace.exchanges:
                body = exchange.request.body
                if body is not None and body.kind == "json" and isinstance(body.value, dict):
                    body.value.pop(member, None)
        judged_once.append(judge(trace))
    return [
        replace(each, trace=replace(each.trace, path=f"{number:03}.jsonl"))
        for number in range(229)
        for each in (judged_once[number % len(judged_once)],)
    ]


def test_many_recordings_stay_readable_and_lose_no_requirement() -> None:
    """229 recordings make at most 400 lines at 80 columns, and what is breached is named with a place and a change."""
    run = many()
    judging = Judging(Terms())
    gathered = Causes()
    for each in run:
        judging.add(each)
        gathered.add(each, {})
    blocks = CauseText().blocks(gathered.connector())
    assert sum(len(block) + 1 for block in blocks) <= 350
    text = "\n".join(line for block in blocks for line in block)
    verdicts = judging.conclude().verdicts
    broken = [name for name, verdict in verdicts.items() if verdict in (Verdict.FAIL, Verdict.WARN)]
    assert len(broken) > 20
    assert [name for name in broken if name not in text] == []
    for block in blocks:
        words = " ".join(" ".join(block).split())
        assert all(part in words for part in ("change ", "replay signet-conformance check ", ".jsonl"))
    for cause in gathered.connector():
        for name in cause.requirements:
            shows = [each for each in run if any(f.exchanges for f in each.judgements[name].findings)]
            assert cause.traces <= len(run)
            assert len(cause.requirements) > 1 or cause.traces <= len(shows)


# -- what follows from what, and which example stands for it


def refused(status: int = 400, **request: Any) -> Line:
    """A prompt that the daemon refuses."""
    answer = {"error": "userMessage or userPrompt is required"}
    body = {"harness": "openclaw", "agentId": "atlas-agent", "sessionKey": "s-41c7", **request}
    line = post("/api/hooks/user-prompt-submit", body, answer=answer)
    line["response"]["status"] = status
    return line


def test_a_refusal_is_part_of_what_was_refused(tmp_path: Path) -> None:
    """A prompt without its text is answered 400: one cause, led by what is to be mended, its calls counted once."""
    listed = causes(judged(tmp_path / "a.jsonl", [health(), start(), refused(), refused(), end()]))
    cause = of(listed, "SIG-HTTP-014")
    assert cause.requirement == "SIG-PROMPT-001"
    assert cause.calls["user-prompt-submit"] == 2


def test_a_refusal_of_what_is_right_stands_alone(tmp_path: Path) -> None:
    """Nothing is wrong with the request in one of two traces: the refusal is a cause of its own."""
    wrong = judged(tmp_path / "a.jsonl", [health(), start(), refused(), end()])
    right = judged(tmp_path / "b.jsonl", [health(), start(), refused(userMessage="Which database?"), end()])
    for traces in ((wrong, right), (right, wrong)):
        assert of(causes(*traces), "SIG-HTTP-014").requirements == ["SIG-HTTP-014"]


def test_what_shows_at_accepted_calls_too_is_not_why_another_was_refused(tmp_path: Path) -> None:
    """The agent is missing everywhere, the text in the prompt alone: the refusal belongs to the text."""
    lines = [health(), start(), refused(), end()]
    for line in lines[1:]:
        line["request"]["body"]["json"].pop("agentId", None)
    cause = of(causes(judged(tmp_path / "a.jsonl", lines)), "SIG-HTTP-014")
    assert "SIG-PROMPT-001" in cause.requirements
    assert "SIG-AGENT-002" not in cause.requirements


def test_an_undisturbed_trace_is_the_example_though_it_is_larger(tmp_path: Path) -> None:
    """A fault makes a recording harder to read than a few exchanges more."""
    fault = {"kind": "mark", "t": 0.5, "name": "fault", "data": {"on": True, "kind": "delay", "match": {}, "id": 1}}
    disturbed = judged(tmp_path / "small.jsonl", [fault, health(), start(), recall(), end()])
    plain = judged(tmp_path / "large.jsonl", BREACHING)
    for traces in ((disturbed, plain), (plain, disturbed)):
        assert of(causes(*traces), "SIG-AGENT-002").first.file == str(tmp_path / "large.jsonl")
