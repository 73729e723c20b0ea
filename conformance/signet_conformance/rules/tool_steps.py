"""Requests that a tool's step can have caused, and whether a sent value is the given one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from signet_conformance.facts import Call, Recording, plain
from signet_conformance.trace.marks import StepMark

REDACTION = "<redacted:"
NO_ARGUMENTS = "the step's mark does not say what the tool was given"


def requests_of(recording: Recording, mark: StepMark) -> Iterator[Call]:
    """The requests during a step that no other session's key marks as another's."""
    timeline = recording.timeline
    for call in timeline.calls_in(mark):
        owner = timeline.session_of(call.key)
        if owner in (None, mark.session) or timeline.are_related(owner, mark.session):
            yield call


def identifier_in(value: object) -> str:
    """The id that a member holds; empty for what is no text."""
    return value.strip() if isinstance(value, str) else ""


def text_in(value: object) -> str:
    """The text of a member; empty if it holds another type."""
    return value if isinstance(value, str) else ""


def is_value(sent: object, wanted: object) -> bool:
    """Whether two values are one, however it is written."""
    if isinstance(sent, bool) or isinstance(wanted, bool):
        return str(sent).lower() == str(wanted).lower()
    if isinstance(sent, list) or isinstance(wanted, list):
        return _members(sent) == _members(wanted)
    try:
        return sent == wanted or abs(float(sent) - float(wanted)) < 1e-9  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        one, other = plain(f"{sent}"), plain(f"{wanted}")
        return one.casefold() == other.casefold() or (_time(one) is not None and _time(one) == _time(other))


def _members(value: object) -> set[str]:
    """The members of a list, or of a text that names them with commas between."""
    listed = value if isinstance(value, list) else f"{value}".split(",")
    return {plain(f"{each}") for each in listed}


def _time(text: str) -> datetime | None:
    """The time that a text in ISO 8601 names, of a day its first moment; None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
