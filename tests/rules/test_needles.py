"""Finding injected texts: the block search and a plain `in` agree on every text."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from signet_conformance.rules.needles import Needles

# Few letters and short needles, so that needles overlap, contain each other and nearly occur.
NEEDLE = st.text("ab", min_size=2, max_size=9)
SINCE = st.integers(1, 20)


@settings(deadline=None)
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
    found = Needles(needles).first_in(text, before)
    right = {since for needle, since in needles.items() if since < before and needle in text}
    assert (found in right) if right else found is None


@settings(deadline=None)
@given(needles=st.sets(st.text("abcd", min_size=40, max_size=60), min_size=13, max_size=16), data=st.data())
def test_a_long_needle_is_found_at_any_place(needles: set[str], data: st.DataObject) -> None:
    """However much text stands before it, and whichever of many it is."""
    ordered = sorted(needles)
    chosen = data.draw(st.sampled_from(ordered), label="needle")
    text = data.draw(st.text("wxyz", max_size=90), label="before") + chosen + data.draw(st.text("wxyz"), label="after")
    assert Needles(dict.fromkeys(ordered, 3)).first_in(text, 4) == 3
    assert Needles(dict.fromkeys(ordered, 3)).first_in(text, 3) is None
