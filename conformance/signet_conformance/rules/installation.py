"""Requirements on the installation: the host accepts it, and installing again leaves nothing double or old."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from signet_conformance.errors import counted
from signet_conformance.facts import COMPLETE, END, LIFECYCLE, PRE, PROMPT, START, Call, Recording
from signet_conformance.rules.excuses import sent_twice
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.trace import marks
from signet_conformance.trace.marks import StepName

_MOST_NAMED = 3
_PROSE = ".md"
_AFTER_FILE = re.compile(r": | is |, which ")


def nothing_stands_twice(recording: Recording) -> Iterator[Outcome]:
    """Installed twice, or over an older release, nothing stands twice and nothing old is left."""
    for mark in recording.marks(marks.ReinstalledMark):
        if not (mark.twice or mark.old or mark.changed):
            # An installer does well to leave a file alone that it cannot read.
            failed = mark.words is not None and mark.how != marks.ONCE
            yield undecided(message=f"{_when(mark)}, the installer failed: {mark.words}") if failed else PASS
            continue
        host = marks.name_host(mark)
        pairs = sent_twice(recording)
        if mark.twice:
            yield breach_of(
                "SIG-LOAD-005",
                "twice",
                *(pairs[0] if pairs else ()),
                received=list(mark.twice),
                effect=_effect(pairs),
                when=_when(mark),
                host=host,
                entries=_name_first(mark.twice),
            )
        # The hooks that are sent twice are the effect of one finding only.
        unreported = [] if mark.twice else pairs
        for file, left in _by_file(mark.old).items():
            effects = [] if file.endswith(_PROSE) else unreported
            yield breach_of(
                "SIG-LOAD-005",
                "old",
                *(effects[0] if effects else ()),
                received=list(left),
                effect=_effect(effects),
                when=_when(mark),
                entries=_name_first(left),
                file=file,
            )
            unreported = unreported if file.endswith(_PROSE) else []
        for file, losses in _by_file(mark.changed).items():
            what = "what the user wrote for the model is" if file.endswith(_PROSE) else "settings of others are"
            yield breach_of(
                "SIG-LOAD-005",
                "changed",
                received=list(losses),
                when=_when(mark),
                what=what,
                entries=_name_first(losses),
                file=file,
            )


def _when(mark: marks.ReinstalledMark) -> str:
    if mark.how == marks.OVER:
        return f"installed over {mark.older or 'an older release'}"
    return "installed twice" if mark.how == marks.AGAIN else "installed once"


def _by_file(entries: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Entries by the file that their descriptions begin with, since a fix may concern one file only."""
    files: dict[str, list[str]] = {}
    for entry in entries:
        files.setdefault(_AFTER_FILE.split(entry, maxsplit=1)[0], []).append(entry)
    return files


def _name_first(entries: Sequence[str]) -> str:
    more = len(entries) - _MOST_NAMED
    return "; ".join(entries[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _effect(pairs: Sequence[tuple[Call, Call]]) -> str:
    if not pairs:
        return ""
    often = Counter(str(first.operation) for first, _ in pairs)
    counts = ", ".join(f"{operation} {counted(count, 'time')}" for operation, count in often.items())
    return f"each hook is sent twice ({counts}): "


_OCCASIONS: Mapping[str, frozenset[str | None]] = {
    # A session may be started with its first prompt.
    START: frozenset({StepName.START, StepName.PROMPT}),
    PROMPT: frozenset({StepName.PROMPT}),
    PRE: frozenset({StepName.COMPACT}),
    COMPLETE: frozenset({StepName.COMPACT}),
    END: frozenset({StepName.PROMPT, StepName.END}),
}
"""Operation to the steps of a recording in which a connector surely calls it."""
_NEVER: frozenset[str | None] = frozenset({"never"})
"""No step has this name, so it is never among the steps that were performed."""


def installed_files_are_accepted(recording: Recording) -> Iterator[Outcome]:
    """The host accepts what the connector's installer wrote and what the connector registers."""
    for mark in recording.marks(marks.InstalledMark):
        host = marks.name_host(mark)
        what = mark.file or "what was installed"
        if recording.timeline.switches.any_at(mark.seq):
            # What a hook prints while its daemon is disturbed is judged where the fault is.
            continue
        if mark.accepted is True:
            yield PASS
        elif mark.accepted is None:
            yield undecided(message=f"whether {host} accepts {what} is not known")
        elif mark.event is not None:
            yield _unknown_event(recording, mark, host)
        else:
            name = "flaw" if mark.minor else "not accepted"
            why = (f": {mark.words}" if mark.words else "") + recording.host_age
            yield breach_of("SIG-LOAD-002", name, received=mark.words, mark=mark, host=host, what=what, why=why)
    yield from (PASS for mark in recording.marks(marks.RegisteredMark) if mark.refused == 0)
    # A handler of an event that only earlier releases knew does not explain why no hook called.
    if not any(mark.accepted is False and not mark.formerly for mark in recording.marks(marks.InstalledMark)):
        yield from _silence(recording)


def _unknown_event(recording: Recording, mark: marks.InstalledMark, host: str) -> Outcome:
    """Judge a handler of an event that the host does not know; its operation may be called all the same."""
    problem = f"{host} knows no event {mark.event}" + (f" ({mark.words})" if mark.words else "")
    needed = " or ".join(mark.operations)
    called = recording.of(*mark.operations, cut=True)
    performed = {step.step for step in recording.timeline.performed}
    if mark.formerly and (mark.elsewhere is not None or called or not mark.operations):
        # A connector may serve several releases of its host.
        return PASS
    if mark.formerly and not recording.of(*LIFECYCLE, cut=True):
        return undecided(message=f"{problem}: no hook of the connector was called, so it is silent for another reason")
    if mark.elsewhere is not None:
        name = "replaced event"
    elif called or not mark.operations:
        name = "made up event" if called else "needless event"
    elif not recording.timeline.switches.any_between(-inf, inf) and any(
        _OCCASIONS.get(operation, _NEVER) <= performed for operation in mark.operations
    ):
        name = "unknown event"
    else:
        return undecided(message=f"{problem}: no undisturbed step of this recording needs {needed}")
    return breach_of(
        "SIG-LOAD-002", name, *called[:1], recording=recording, mark=mark, host=host, problem=problem, needed=needed
    )


def _silence(recording: Recording) -> Iterator[Outcome]:
    """The breach if a program that people run asked its model while no hook of the connector called.

    Only the recording of its model proves that the program ran, and only without faults could hooks arrive. A
    connector that declares no hook is a memory server.
    """
    model = recording.model
    asked = recording.marks(marks.ModelMark) if model is not None and model.header.played is not True else []
    is_silent = not recording.of(*LIFECYCLE, cut=True) and not recording.marks(marks.StrayMark)
    capabilities = recording.declared.capabilities
    has_hooks = capabilities is None or not LIFECYCLE.isdisjoint(capabilities)
    if asked and is_silent and has_hooks and not recording.timeline.switches.any_between(-inf, inf):
        loaded = next(iter(recording.marks(marks.LoadedMark)), None)
        host = "its host" if loaded is None else marks.name_host(loaded, "")
        why = next((f": {mark.text}" for mark in recording.marks(marks.RemarkMark) if mark.unheard and mark.text), "")
        yield breach_of("SIG-LOAD-002", "silence", host=host, turns=counted(len(asked), "turn"), why=why)
