"""Two recordings compared: what counts as a difference, and which are contract-relevant."""

from __future__ import annotations

import copy
from pathlib import Path

from signet_conformance.diff.recordings import compare as compare_recordings
from signet_conformance.facts import Recording
from signet_conformance.files.json_values import ABSENT
from signet_conformance.trace import read
from tests.support.evidence import PAIRS

from .recordings import KEY, OTHER_KEY, Compare, call, edited, hook, recording, session, told

START, FIRST, SECOND, END = range(4)


def pair(name: str) -> list[tuple[str, bool, str, str, int | None, int | None]]:
    """Everything that differs between the two members of a pair of recordings."""
    first, second = (Recording(read(PAIRS / name / f"{side}.jsonl")) for side in "ab")
    return [
        (d.kind.value, d.relevant, d.call.rpartition("/")[2], d.member, d.first.exchange, d.second.exchange)
        for d in compare_recordings(first, second).differences
    ]


def test_two_recordings_of_one_run_differ_in_nothing() -> None:
    """Ids, times and keys may differ."""
    assert pair("volatile") == []


def test_sessions_in_another_order_are_a_cosmetic_difference() -> None:
    """Sessions one after the other instead of in turns: only the order between them differs, and nobody reads it."""
    assert pair("interleaving") == [("reordered", False, "sessions", "the order between sessions", None, None)]


def test_a_lost_hook_and_a_lost_agent_id_are_relevant_differences() -> None:
    """A pre-compaction that is gone and an agentId that is gone are both contract-relevant, and they are all."""
    assert pair("regression") == [
        ("missing", True, "pre-compaction", "", 16, None),
        ("changed", True, "compaction-complete", "request body /agentId", 17, 16),
    ]


def test_relevant_and_cosmetic_differences_are_told_apart() -> None:
    """Another text is cosmetic; a prompt submitted twice and a runtime path that is gone are contract-relevant."""
    assert pair("mixed") == [
        ("changed", False, "user-prompt-submit", "request body /userMessage", 3, 3),
        ("added", True, "user-prompt-submit", "", None, 7),
        ("changed", True, "user-prompt-submit", "request header x-signet-runtime-path", 17, 18),
    ]


def test_a_recording_differs_from_itself_in_nothing(compare: Compare) -> None:
    """Compared with itself a recording has no difference, and neither has one under other keys."""
    assert compare(session(), session()).differences == []
    assert compare(session(), session(OTHER_KEY)).differences == []


def test_a_key_that_two_sessions_share_is_a_difference(compare: Compare) -> None:
    """A call that moved into another session is missing from one and added to the other."""
    first = [*session(KEY), *session(OTHER_KEY, "/srv/beacon")]
    moved = copy.deepcopy(first)
    moved[SECOND]["request"]["body"]["json"]["sessionKey"] = OTHER_KEY
    kinds = [(kind, relevant) for kind, relevant, member in told(compare(first, moved).differences) if not member]
    assert kinds == [("missing", True), ("added", True)]


def test_an_identity_member_that_changes_is_relevant(compare: Compare) -> None:
    """Another agent, a member that is gone and another type of a text each name the requirements that read them."""
    for place, body, requirement in (
        (START, {"agentId": "beacon-agent"}, "SIG-AGENT-002"),
        (START, {"project": None}, "SIG-START-003"),
        (FIRST, {"userMessage": ["Which database?"]}, "SIG-PROMPT-001"),
        (FIRST, {"userMessage": "  "}, "SIG-PROMPT-001"),
        (END, {"reason": "clear"}, "SIG-END-009"),
        (END, {"transcript": None}, "SIG-END-003"),
    ):
        (difference,) = compare(session(), edited(session(), place, **body)).differences
        assert difference.relevant
        assert requirement in difference.requirements


def test_a_text_that_changes_is_cosmetic(compare: Compare) -> None:
    """Prompt and transcript may say something else, so long as they say something."""
    changed = edited(edited(session(), FIRST, userMessage="Which cache?"), END, transcript="User: Which cache?")
    assert told(compare(session(), changed).differences) == [
        ("changed", False, "request body /userMessage"),
        ("changed", False, "request body /transcript"),
    ]


def test_a_member_that_nobody_reads_is_cosmetic(compare: Compare) -> None:
    """A member that no requirement names may come and go."""
    (difference,) = compare(session(), edited(session(), START, context="terminal")).differences
    assert not difference.relevant
    assert difference.first.value is ABSENT
    assert difference.second.pointer == "/request/body/json/context"


def test_an_exchange_that_moves_within_its_session_is_relevant(compare: Compare) -> None:
    """An end before the last prompt is reordered, once, and nothing else differs."""
    moved = session()
    moved[SECOND], moved[END] = moved[END], moved[SECOND]
    assert told(compare(session(), moved).differences) == [("reordered", True, "")]


def test_of_two_calls_that_say_the_same_the_one_that_is_gone_is_missing(compare: Compare) -> None:
    """What tells them apart, an id in the path and the status or a tag, decides which one has no counterpart."""
    saves = [hook("remember", content="Friday", tags=tags) for tags in ("a", None)]
    found, lost = (call("GET", f"/api/memory/{key}") for key in (KEY, OTHER_KEY))
    lost["response"]["status"] = 404
    for calls in (saves, [found, lost]):
        (difference,) = compare([*session(), *calls], [*session(), calls[1]]).differences
        assert (difference.kind.value, difference.first.exchange) == ("missing", 5)


def test_an_exchange_that_is_gone_does_not_change_the_turns_of_the_sessions(compare: Compare) -> None:
    """A call that only one recording has parts two runs of another session in that one alone."""
    taken_in_turns = [line for both in zip(session(), session(OTHER_KEY), strict=True) for line in both]
    fewer = [*taken_in_turns[:3], *taken_in_turns[4:]]
    assert [kind for kind, _, _ in told(compare(taken_in_turns, fewer).differences)] == ["missing"]


def test_exchanges_that_ran_at_the_same_time_have_no_order(compare: Compare) -> None:
    """Two calls that overlap on both sides may be numbered either way."""
    first = session()
    for line, times in zip(first, ((1, 2), (3, 6), (4, 5), (7, 8)), strict=True):
        line["t0"], line["t1"] = times
    second = copy.deepcopy(first)
    second[FIRST], second[SECOND] = second[SECOND], second[FIRST]
    assert told(compare(first, second).differences) == [("reordered", False, "")]


def test_a_status_and_a_flag_of_an_answer_are_relevant(compare: Compare) -> None:
    """Another status, and skipped where it was not, are read by requirements; a count of memories is not."""
    changed = session()
    changed[START]["response"]["status"] = 409
    changed[FIRST]["response"]["body"]["json"] = {"skipped": True, "memoryCount": 3}
    assert told(compare(session(), changed).differences) == [
        ("changed", True, "status"),
        ("changed", True, "answer /skipped"),
        ("changed", False, "answer /memoryCount"),
    ]


def test_an_answer_that_never_came_is_relevant(compare: Compare) -> None:
    """An exchange without its response differs in status and error."""
    changed = session()
    changed[FIRST] |= {"response": None, "error": {"kind": "upstream_reset"}}
    assert told(compare(session(), changed).differences) == [("changed", True, "status"), ("changed", True, "error")]


def test_of_a_token_only_the_scheme_is_compared(compare: Compare) -> None:
    """Two tokens are alike; a scheme that is no Bearer is a difference."""
    lines = [
        [hook("session-start") | call("POST", "/api/hooks/session-start", {}, headers={"authorization": value})]
        for value in ("Bearer <redacted:1>", "Bearer <redacted:7>", "Basic <redacted:1>")
    ]
    assert compare(lines[0], lines[1]).differences == []
    assert told(compare(lines[0], lines[2]).differences) == [("changed", True, "request header authorization")]


def test_a_repeated_probe_is_cosmetic_and_the_only_one_is_not(compare: Compare) -> None:
    """How often a connector looks for the daemon is read by nobody; that it looks at all is."""
    probe = call("GET", "/health")
    assert told(compare([probe, *session()], [probe, probe, *session()]).differences) == [("added", False, "")]
    (only,) = compare([probe, *session()], session()).differences
    assert "SIG-HEALTH-001" in only.requirements


def test_a_link_that_changes_is_relevant(compare: Compare) -> None:
    """Ids may be others, but what was one id stays one: reading another memory than the saved one differs."""
    ids = [f"{n:08x}-2b57-4a7e-9d56-0b6c1c2a9f01" for n in range(4)]

    def saved_and_read(saved: str, looked_at: str) -> list[dict[str, object]]:
        save = call("POST", "/api/memory/remember", {"content": "The window is 02:10."}, answer={"id": saved})
        return [save, call("GET", f"/api/memory/{looked_at}")]

    assert compare(saved_and_read(ids[0], ids[0]), saved_and_read(ids[1], ids[1])).differences == []
    (difference,) = compare(saved_and_read(ids[0], ids[0]), saved_and_read(ids[1], ids[2])).differences
    assert difference.member == "path"
    assert "SIG-MEM-001" in difference.requirements


def test_declared_agents_and_the_daemon_version_are_compared(tmp_path: Path) -> None:
    """Other declared agents are relevant; another daemon version is told, and is cosmetic."""
    first = recording(tmp_path / "a.jsonl", session(), declared={"agents": ["atlas-agent"]})
    second = recording(tmp_path / "b.jsonl", session(), declared={"agents": ["x"]}, daemon_version="0.145.8")
    assert told(compare_recordings(first, second).differences) == [
        ("changed", True, "declared agents"),
        ("changed", False, "daemon version"),
    ]


def test_hostile_recordings_are_compared_all_the_same(compare: Compare) -> None:
    """Bodies that are no objects, huge texts and odd headers neither raise nor take long."""
    odd = session()
    odd[START]["request"]["body"] = {"text": "{broken", "media_type": "text/plain"}
    odd[FIRST]["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "x"}
    odd[SECOND]["request"]["body"] = {"json": [1, 2]}
    odd[END]["request"]["body"]["json"]["transcript"] = "/a" * 500_000
    assert compare(session(), odd).relevant
    assert compare(odd, session()).relevant
    assert compare(odd, odd).differences == []
