"""Alignment: each item once, in order on both sides, equal items together."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from hypothesis import given, strategies as st

from signet_conformance.diff import alignment
from signet_conformance.diff.alignment import Item, Pair, align, match, sessions

from .recordings import KEY, OTHER_KEY, Line, call, hook, recording, session

ITEMS = st.lists(st.builds(Item, st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12)


def items(text: str) -> list[Item]:
    """`aX bY` as items."""
    return [Item(word[0], word[1:]) for word in text.split()]


def orderly(pairs: list[Pair], first: list[Item], second: list[Item]) -> bool:
    """Whether each index of both sides occurs once and in order, and only equal labels meet."""
    ours = [i for i, _ in pairs if i is not None]
    theirs = [j for _, j in pairs if j is not None]
    meet = all(first[i].label == second[j].label for i, j in pairs if i is not None and j is not None)
    return ours == list(range(len(first))) and theirs == list(range(len(second))) and meet


@given(ITEMS, ITEMS)
def test_every_item_is_aligned_once_and_in_order(first: list[Item], second: list[Item]) -> None:
    """Whatever the sequences, nothing is lost, doubled or crossed."""
    assert orderly(align(first, second), first, second)


@given(ITEMS, ITEMS)
def test_long_remainders_keep_the_same_promise(first: list[Item], second: list[Item]) -> None:
    """The way that long remainders take (anchors, then windows) promises the same."""
    pairs = list(alignment._Alignment(first, second)._split_at_anchors(0, len(first), 0, len(second)))
    assert orderly(pairs, first, second)
    pairs = list(alignment._Alignment(first, second)._in_windows(0, len(first), 0, len(second)))
    assert orderly(pairs, first, second)


@given(ITEMS)
def test_a_sequence_is_aligned_with_itself(first: list[Item]) -> None:
    """Every item meets itself."""
    assert align(first, first) == [(index, index) for index in range(len(first))]


def test_the_last_of_equal_items_is_the_one_that_was_added() -> None:
    """A repeat has no counterpart; what it repeats has."""
    assert align(items("s1 p1 e1"), items("s1 p1 p1 e1")) == [(0, 0), (1, 1), (None, 2), (2, 3)]
    assert align(items("s1 p1 p1 e1"), items("s1 p1 e1")) == [(0, 0), (1, 1), (2, None), (3, 2)]


def test_of_equal_items_those_alike_in_every_detail_meet() -> None:
    """What tells equal items apart decides which of them is missing; where nothing does, it is the last."""
    first, second = items("s1 p1 p1 p1 e1"), items("s1 p1 p1 e1")
    details = (["s", "a", "b", "c", "e"], ["s", "a", "c", "e"])
    gone = [(0, 0), (1, 1), (2, None), (3, 2), (4, 3)]
    assert align(first, second, lambda side, index: details[side][index]) == gone
    added = [(second, first) for first, second in gone]
    assert align(second, first, lambda side, index: details[1 - side][index]) == added


@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_details_lose_nothing(ours: list[str], theirs: list[str]) -> None:
    """Whatever tells a row of equal items apart, each is aligned once and in order, and most of those alike meet."""
    first, second = [Item("p", "")] * len(ours), [Item("p", "")] * len(theirs)
    pairs = align(first, second, lambda side, index: (ours, theirs)[side][index])
    assert orderly(pairs, first, second)
    met = sum(ours[i] == theirs[j] for i, j in pairs if i is not None and j is not None)
    few, many = sorted((ours, theirs), key=len)
    if len(few) < len(many):
        assert met == max(
            sum(item == many[at] for item, at in zip(few, places, strict=True))
            for places in combinations(range(len(many)), len(few))
        )


def test_an_item_with_other_content_meets_its_like() -> None:
    """The same call with another text is one call that changed, not one missing and one added."""
    assert align(items("s1 p1 e1"), items("s1 p2 e1")) == [(0, 0), (1, 1), (2, 2)]


def test_content_decides_which_of_several_is_missing() -> None:
    """Of two prompts the one whose text is gone is missing."""
    assert align(items("s1 p1 p2 e1"), items("s1 p2 e1")) == [(0, 0), (1, None), (2, 1), (3, 2)]


def test_ten_thousand_items_in_reverse_are_aligned() -> None:
    """The worst order for the shortcuts is no quadratic comparison: this ends."""
    first = [Item("p", str(number)) for number in range(10_000)]
    second = first[::-1]
    assert orderly(align(first, second), first, second)


def test_a_call_that_is_gone_from_a_long_repetition_moves_nothing() -> None:
    """Of a thousand turns that say the same, one lost call is one missing call."""
    first = [*items("x1"), *items("s1 p1 r1 e1") * 1000, *items("x2")]
    gone = [*first[1:2001], *first[2003:-1]]
    pairs = align(first, gone)
    assert orderly(pairs, first, gone)
    assert [(index is None, other is None) for index, other in pairs if None in (index, other)] == [(False, True)] * 4


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
