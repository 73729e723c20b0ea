"""Exchanges are put into pieces that no session stands in two of."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from signet_conformance.trace.glance import SessionGroups

NAMES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=2), min_size=1, max_size=30)


def pieces(named: Sequence[Sequence[str]], piece: int = 1, most: int = 1000) -> Sequence[Sequence[int]] | None:
    """The pieces of exchanges that name these keys, each of size 1."""
    sessions = SessionGroups()
    for names in named:
        sessions.put(names)
    sessions.settle()
    return sessions.pieces([1] * len(named), piece, most)


@given(named=NAMES, piece=st.integers(0, 10))
def test_no_key_is_named_in_two_pieces(named: list[list[str]], piece: int) -> None:
    """Whatever names what: each exchange is in one piece, in order, and each key in one; the first begins foremost."""
    made = pieces(named, piece)
    assert made is not None
    assert sorted(place for places in made for place in places) == list(range(len(named)))
    assert all(list(places) == sorted(places) for places in made)
    of_pieces = [{name for place in places for name in named[place]} for places in made]
    for number, keys in enumerate(of_pieces):
        assert all(keys.isdisjoint(other) for other in of_pieces[number + 1 :])


def test_keys_that_one_exchange_names_are_of_one_session() -> None:
    """Two keys named together join what names either, before and after."""
    made = pieces([["a"], ["b"], ["c"], ["a", "b"], ["b"]], piece=0)
    assert made is not None
    assert [list(places) for places in made] == [[0, 1, 3, 4], [2]]


def test_large_session_leaves_no_pieces() -> None:
    """A session that is larger than may be held is no piece."""
    assert pieces([["a"]] * 11, most=10) is None
    assert pieces([["a"]] * 10, most=10) is not None


def test_exchanges_without_a_key_make_pieces_too() -> None:
    """A recording that names no key is not one piece."""
    made = pieces([[]] * 40, piece=5)
    assert made is not None
    assert len(made) > 2
