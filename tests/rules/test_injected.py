"""Finding injected texts: the block search and a plain `in` agree on every text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from signet_conformance.rules.injected import Needles, StoredNeedle, StoredNeedles, hashes_of_pieces

# Few letters and short needles, so that needles overlap, contain each other and nearly occur.
NEEDLE = st.text("ab", min_size=2, max_size=9)
SINCE = st.integers(1, 20)
# What injected texts are made of: shared headings, lines, sentences, words that end alike.
PIECE = st.sampled_from(
    [
        "# Notes of the week\n",
        "\n",
        ". ",
        " ",
        "The staging host is called atlas",
        "Deploys are done on Friday",
        "Rules are these three pages ",
        "ask before the change",
        "s ",
        "e ",
        "x" * 30,
    ]
)
PROSE = st.lists(PIECE, min_size=3, max_size=9).map("".join).filter(lambda text: len(text) >= 40)


@given(
    needles=st.dictionaries(NEEDLE, SINCE, min_size=1, max_size=30),
    pieces=st.lists(NEEDLE | st.text("abc", max_size=12), max_size=8),
    before=st.integers(0, 22),
)
@example(needles={f"{n:04b}".replace("0", "a").replace("1", "b"): 1 for n in range(16)}, pieces=["cabab"], before=2)
def test_a_needle_is_found_where_a_plain_search_finds_it(
    needles: dict[str, int], pieces: list[str], before: int
) -> None:
    """Something is found exactly where a needle known before the number occurs, and it is such a needle's number."""
    text = "".join(pieces)
    number = Needles(needles).first_in(text, before)
    right = {since for needle, since in needles.items() if since < before and needle in text}
    assert (number in right) if right else number is None


@given(needles=st.sets(st.text("abcd", min_size=40, max_size=60), min_size=13, max_size=16), data=st.data())
def test_a_long_needle_is_found_at_any_place(needles: set[str], data: st.DataObject) -> None:
    """However much text stands before it, and whichever of many it is."""
    ordered = sorted(needles)
    chosen = data.draw(st.sampled_from(ordered), label="needle")
    text = data.draw(st.text("wxyz", max_size=90), label="before") + chosen + data.draw(st.text("wxyz"), label="after")
    assert Needles(dict.fromkeys(ordered, 3)).first_in(text, 4) == 3
    assert Needles(dict.fromkeys(ordered, 3)).first_in(text, 3) is None


@pytest.mark.parametrize("length", [4, 5, 47, 48, 49, 80])
@pytest.mark.parametrize("shared", [0, 1, 23, 24, 25, 46, 47, 79])
def test_needle_is_found_wherever_it_differs_from_the_others(length: int, shared: int) -> None:
    """At the beginning of a text, at its end and at each place between, whatever the needles have in common."""
    shared = min(shared, length - 1)
    needles = [("a" * shared + letter).ljust(length, "q") for letter in "bcdfghijklmnop"]
    known = Needles({needle: seq for seq, needle in enumerate(needles, start=1)})
    for before in range(50):
        for after in (0, 1, 24, 49):
            assert known.first_in("z" * before + needles[9] + "z" * after, 20) == 10
            assert known.first_in("z" * before + needles[9] + "z" * after, 10) is None


@given(
    needles=st.dictionaries(PROSE, SINCE, min_size=13, max_size=24),
    pieces=st.lists(PROSE | PIECE, max_size=3),
    before=st.integers(0, 22),
    data=st.data(),
)
def test_prose_is_found_where_a_plain_search_finds_it(
    needles: dict[str, int], pieces: list[str], before: int, data: st.DataObject
) -> None:
    """The same for texts that share headings, lines and sentences, whole or with their ends cut off."""
    near = data.draw(st.sampled_from(sorted(needles)), label="near")
    start, end = data.draw(st.integers(0, 2), label="start"), data.draw(st.integers(0, 2), label="end")
    text = "".join([*pieces[:1], near[start : len(near) - end], *pieces[1:]])
    number = Needles(needles).first_in(text, before)
    right = {since for needle, since in needles.items() if since < before and needle in text}
    assert (number in right) if right else number is None


SHARED = "The staging host is called atlas"
KINDS = {"one line": f"{{0}}\n{SHARED}\n{{1}}", "no line": "{1}" + "q" * 40}
"""Texts that share their longest line, and texts that have none; each is longer than the one before."""


def told(kind: str, count: int, *, stored: bool) -> tuple[dict[str, int], Needles]:
    """Texts with their numbers, from 1, and the search for them: at hand, or in a file, by places."""
    texts = {KINDS[kind].format(letter, letter * n): n for n, letter in enumerate("ponmlkjihgfedcba"[:count], start=1)}
    if not stored:
        return texts, Needles(texts)
    at = {seq * Needles.PLACES + seq % Needles.PLACES: text for text, seq in texts.items()}
    return texts, Needles({}, StoredNeedles(StoredNeedle.of(text, place) for place, text in at.items()), at.__getitem__)


@pytest.mark.parametrize("count", [3, 12, 13, 16])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_of_some_needles_is_found_from_its_number_on(kind: str, count: int, stored: bool) -> None:
    """However many they are, at hand or in a file, by a line that they share or without one."""
    texts, known = told(kind, count, stored=stored)
    for needle, seq in texts.items():
        for text in (needle, f"z{needle}z"):
            assert [known.first_in(text, before) for before in (seq - 1, seq, seq + 1, 20)] == [None, None, seq, seq]
    assert known.first_in("None of these. " * 9, 20) is None


def test_needles_that_share_letters_at_other_places_are_told_apart() -> None:
    """The later they stand in a text, the earlier it comes."""
    shared = "ABCDEFGHIJKLMNOPQRSTUVWY"
    needles = {
        letter * n + shared + "q" * (36 - n): n for letter, n in zip("abcdefghijkl", range(12, 0, -1), strict=True)
    }
    needles |= {letter * 60: 20 for letter in "mn"}
    known = Needles(needles)
    for needle, seq in needles.items():
        assert {known.first_in("z" * before + needle, 21) for before in range(25)} == {seq}


def test_first_of_few_needles_is_told() -> None:
    """Whatever the texts are."""
    needles = {"a" * 40: 2, "b" * 40: 1, "c" * 40: 3}
    assert Needles(needles).first_in("".join(needles), 9) == 1


@pytest.mark.parametrize("count", [3, 16])
@pytest.mark.parametrize(
    ("kind", "pieces", "expected"),
    [
        ("one line", {"\n": [SHARED]}, True),
        ("one line", {"\n": ["A line of other words"]}, False),
        ("one line", {"\n": []}, False),
        ("one line", {".": [SHARED]}, True),
        ("one line", {}, True),
        ("no line", {"\n": [SHARED], ".": [], "x": []}, True),
    ],
)
def test_needle_may_occur(kind: str, pieces: dict[str, list[str]], expected: bool, count: int) -> None:
    """Where a text has its longest line, where lines were not looked at, and where the needle has none."""
    _, known = told(kind, count, stored=True)
    assert known.may_occur({mark: [hash(piece) for piece in found] for mark, found in pieces.items()}) is expected


@given(st.lists(PROSE | NEEDLE, max_size=6))
@example(["ab", "# Notes of the week\nThe staging host is called atlas\nx"])
def test_stored_needles_come_out_of_columns_as_they_went_in(needles: list[str]) -> None:
    """Columns give back place, hash, length, piece and text of each needle, with a piece and without one."""
    stored = [StoredNeedle.of(needle, place) for place, needle in enumerate(needles)]
    assert list(StoredNeedles(stored)) == stored


@given(
    needles=st.lists(PROSE, min_size=1, max_size=30, unique=True),
    pieces=st.lists(PROSE | PIECE, max_size=4),
    before=st.integers(0, 40),
    chosen=st.integers(0, 29),
)
@example([f"A line that is long enough, number {number}\n" * 3 for number in range(25)], [], 40, 24)
@example([f"{number:40}" for number in range(25)], ["no mark"], 40, 24)
def test_distant_needles_are_found_as_those_at_hand(
    needles: list[str], pieces: list[str], before: int, chosen: int
) -> None:
    """However many there are: by what is kept of them, and by the text where that says that one may occur."""
    text = "".join([*pieces[:2], needles[chosen % len(needles)], *pieces[2:]])
    places = {needle: (seq + 1) * Needles.PLACES + seq % Needles.PLACES for seq, needle in enumerate(needles)}
    at = {place: needle for needle, place in places.items()}
    known = Needles(
        {}, StoredNeedles(StoredNeedle.of(needle, place) for needle, place in places.items()), at.__getitem__
    )
    number = known.first_in(text, before)
    right = {place // Needles.PLACES for needle, place in places.items() if needle in text}
    assert (number in right) if any(each < before for each in right) else number is None
    hashes = {mark: hashes_of_pieces([text], mark) for mark in ("\n", ".", "x")}
    assert known.may_occur(hashes)
