"""Which sessions are open at a number: the indexes agree with a model that walks the hooks one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from signet_conformance.facts import Recording
from tests.support.case_traces import build

OPENING = ("session-start", "user-prompt-submit")
END = "session-end"
NEUTRAL = ("pre-compaction", "compaction-complete", "session-checkpoint-extract", "remember", "recall")
KEYS = ("s1", "s2", "s3")
# Mostly hooks that open and close, mostly of one key: sessions that begin, end and begin again.
HOOK = st.sampled_from((*OPENING, END, END)) | st.sampled_from((*OPENING, END, *NEUTRAL))
KEY = st.just("s1") | st.sampled_from((*KEYS, None))
STEPS = st.integers(0, 12).flatmap(
    lambda size: st.lists(st.tuples(HOOK, KEY, st.booleans()), min_size=size, max_size=size)
)
Step = tuple[str, str | None, bool]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that every example of a property writes anew."""
    return tmp_path_factory.mktemp("open") / "trace.jsonl"


def _recording(file: Path, steps: list[Step]) -> Recording:
    items = [
        {
            "request": {"method": "POST", "path": f"/api/hooks/{hook}", "body": {"sessionKey": key}},
            "response": {"status": 200 if answered else 500, "body": {}},
        }
        for hook, key, answered in steps
    ]
    return Recording(build(file, items))


def _open_before(steps: list[Step], number: int) -> set[str]:
    """The law's term, word by word: the last start, prompt or end of the key was a start or prompt."""
    last = {key: hook for hook, key, _ in steps[: number - 1] if key is not None and hook in (*OPENING, END)}
    return {key for key, hook in last.items() if hook in OPENING}


@given(steps=STEPS)
def test_open_is_what_the_last_turn_or_end_says(file: Path, steps: list[Step]) -> None:
    """A start or prompt opens its key, an end closes it, nothing else does either, and answers do not matter."""
    recording = _recording(file, steps)
    for number in range(1, len(steps) + 2):
        opened = _open_before(steps, number)
        assert {key for key in KEYS if recording.is_open(key, number)} == opened
        assert recording.any_open(number) is bool(opened)
        assert not recording.is_open(None, number)


@given(steps=STEPS)
def test_abandoned_is_open_and_never_ended(file: Path, steps: list[Step]) -> None:
    """From `abandoned_since` on some session is open that gets no end in the rest of the recording."""
    recording = _recording(file, steps)
    for number in range(1, len(steps) + 2):
        ended_later = {key for hook, key, _ in steps[number - 1 :] if hook == END}
        assert (recording.abandoned_since < number) is bool(_open_before(steps, number) - ended_later)


@given(steps=STEPS)
def test_hooks_of_a_key_stand_in_order(file: Path, steps: list[Step]) -> None:
    """Earlier and later hooks of a key are its lifecycle hooks before and after, in order."""
    recording = _recording(file, steps)
    for call in recording.keyed_hooks:
        same = [
            number
            for number, (hook, key, _) in enumerate(steps, start=1)
            if key == call.key and hook not in ("remember", "recall")
        ]
        assert [c.seq for c in recording.earlier(call)] == [n for n in same if n < call.seq]
        assert [c.seq for c in recording.later(call)] == [n for n in same if n > call.seq]
