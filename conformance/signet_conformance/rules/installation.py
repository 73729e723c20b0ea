"""How a connector's installer leaves the host's files: what stands twice, what is old, what of others is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from signet_conformance.facts import LIFECYCLE, Call, Recording
from signet_conformance.rules.outcome import PASS, Outcome, undecided, warn
from signet_conformance.trace.marks import AGAIN, ONCE, OVER, ReinstalledMark

_MOST_NAMED = 3


def nothing_stands_twice(recording: Recording) -> Iterator[Outcome]:
    """Installed twice, or over an older release, nothing stands twice and nothing old is left."""
    for mark in recording.marks(ReinstalledMark):
        if not (mark.twice or mark.old or mark.changed):
            # An installer that leaves a file alone which it cannot read does well.
            failed = mark.words is not None and mark.how != ONCE
            yield undecided(message=f"{_when(mark)}, the installer failed: {mark.words}") if failed else PASS
            continue
        host = " ".join(filter(None, (mark.host or "its host", mark.release)))
        pairs = sent_twice(recording)
        if mark.twice:
            yield warn(
                *(pairs[0] if pairs else ()),
                message=f"{_effect(pairs)}{_when(mark)}, {host} has {_name_first(mark.twice)}",
                expected="each entry once",
                received=list(mark.twice),
                fold="twice",
            )
        if mark.old:
            yield warn(
                *(pairs[0] if pairs and not mark.twice else ()),
                message=("" if mark.twice else _effect(pairs))
                + f"{_when(mark)}, what the older release wrote is left beside the new: {_name_first(mark.old)}",
                expected="what an older release wrote is replaced or removed",
                received=list(mark.old),
                fold="old",
            )
        if mark.changed:
            yield warn(
                message=f"{_when(mark)}, settings of others are changed or gone: {_name_first(mark.changed)}",
                expected="what is not the connector's own stays as it was",
                received=list(mark.changed),
                fold="changed",
            )


def _when(mark: ReinstalledMark) -> str:
    if mark.how == OVER:
        return f"installed over {mark.older or 'an older release'}"
    return "installed twice" if mark.how == AGAIN else "installed once"


def _name_first(entries: tuple[str, ...]) -> str:
    more = len(entries) - _MOST_NAMED
    return "; ".join(entries[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _effect(pairs: Sequence[tuple[Call, Call]]) -> str:
    if not pairs:
        return ""
    often = Counter(str(first.operation) for first, _ in pairs)
    counts = ", ".join(f"{operation} {count} time{'s'[: count != 1]}" for operation, count in often.items())
    return f"each hook is sent twice ({counts}): "


def sent_twice(recording: Recording) -> Sequence[tuple[Call, Call]]:
    """Pairs of lifecycle hooks of one step that say the same, where a mark tells of entries that stand twice."""
    pairs: Sequence[tuple[Call, Call]] | None = recording.memo.get(sent_twice)
    if pairs is None:
        is_doubled = any(mark.twice or mark.old for mark in recording.marks(ReinstalledMark))
        pairs = recording.memo[sent_twice] = list(_pairs(recording)) if is_doubled else []
    return pairs


def _pairs(recording: Recording) -> Iterator[tuple[Call, Call]]:
    before: dict[tuple[object, ...], Call] = {}
    for call in recording.of(*LIFECYCLE, cut=True):
        step = recording.timeline.step_at(call.seq)
        said = (None if step is None else step.seq, call.identity)
        if (first := before.pop(said, None)) is not None:
            yield first, call
        else:
            before[said] = call
