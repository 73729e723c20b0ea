"""Which session of one recording is which of the other."""

from __future__ import annotations

from pathlib import Path

from signet_conformance.diff.sessions import match, sessions

from .recordings import KEY, OTHER_KEY, Line, call, hook, recording, session

THIRD = "0badc0de-93a5-4f1e-8a53-5d3a0e7b2c03"


def matched(folder: Path, first: list[Line], second: list[Line]) -> list[tuple[str | None, str | None]]:
    """The keys of the matched sessions; `-` where a side has none."""
    sides = [sessions(recording(folder / name, lines)) for name, lines in (("a", first), ("b", second))]
    return [(p.first.key if p.first else "-", p.second.key if p.second else "-") for p in match(*sides)]


def test_equal_keys_match(tmp_path: Path) -> None:
    """A key names the session, whatever else differs and whatever the order."""
    first, second = session(KEY), session(OTHER_KEY)
    assert matched(tmp_path, first + second, second + first) == [(KEY, KEY), (OTHER_KEY, OTHER_KEY)]


def test_sessions_of_one_project_match_in_order(tmp_path: Path) -> None:
    """Without equal keys, harness, agent and project decide, then the order of appearance."""
    first = [*session("one", "/srv/atlas"), *session("two", "/srv/beacon"), *session("three", "/srv/atlas")]
    second = [*session("b1", "/srv/beacon"), *session("a1", "/srv/atlas"), *session("a2", "/srv/atlas")]
    assert matched(tmp_path, first, second) == [("one", "a1"), ("two", "b1"), ("three", "a2")]


def test_the_same_operations_come_before_the_same_place(tmp_path: Path) -> None:
    """Of two sessions of a project the one with the same operations is the counterpart."""
    short = [hook("session-start", "s", project="/srv/atlas"), hook("session-end", "s", cwd="/srv/atlas")]
    other = [hook("session-start", "t", project="/srv/atlas"), hook("session-end", "t", cwd="/srv/atlas")]
    assert matched(tmp_path, [*short, *session(KEY)], [*session(OTHER_KEY), *other]) == [("s", "t"), (KEY, OTHER_KEY)]


def test_a_session_that_lost_its_agent_is_still_the_same(tmp_path: Path) -> None:
    """Sessions that share no name match by their operations, so that the lost name shows as the difference."""
    lost = [
        {**line, "request": {**line["request"], "body": {"json": {"harness": "openclaw", "sessionKey": "n"}}}}
        for line in session("n")
    ]
    assert matched(tmp_path, session("k"), lost) == [("k", "n")]


def test_calls_without_a_key_match_each_other_only(tmp_path: Path) -> None:
    """The calls without a key are a group of their own, and never a session's counterpart."""
    assert matched(tmp_path, [call("GET", "/health")], session("k")) == [(None, "-"), ("-", "k")]


def test_a_session_without_counterpart_stands_alone(tmp_path: Path) -> None:
    """A session that only one side has is told as such, after those that match."""
    assert matched(tmp_path, session(KEY), [*session(THIRD), *session(KEY)]) == [(KEY, KEY), ("-", THIRD)]
