"""Volatile values: what is taken out of a text, what stays, and how a user changes that."""

from __future__ import annotations

import pytest

from signet_conformance.diff.volatile import NAMES, VolatileClasses, own_classes
from signet_conformance.errors import UsageError

SAME = [
    ("1f6f0e0c-2b57-4a7e-9d56-0b6c1c2a9f01", "77c1a6a4-93a5-4f1e-8a53-5d3a0e7b2c02"),
    ("ses_beb78faac4ec46a0b4dc18b26b", "ses_a0000c6d07ef7b77e90d3593ad"),
    ("2026-11-21T20:52:24.769Z", "2026-11-22T09:37:56Z"),
    ("2026-11-21 20:52", "2025-01-01 07:00:01"),
    ("Saturday, November 21, 2026 at 8:52 PM (UTC)", "Sunday, November 22, 2026 at 10:02 AM (UTC)"),
    ("[Sat 2026-06-06 10:00 UTC] Hello", "[Sun 2026-06-07 11:30 UTC] Hello"),
    ("at 8:52 PM", "at 11:01 AM"),
    ('{"timestamp":1780740000000}', '{"timestamp":1780999000123}'),
    ("http://127.0.0.1:3872/x", "http://127.0.0.1:53273/x"),
    ("sha256:" + "ab" * 32, "sha256:" + "cd" * 32),
    ("/home/ada/.claude/projects/atlas/1f6f.jsonl", "/home/bob/.claude/projects/atlas/77c1.jsonl"),
    ("/tmp/pytest-of-ada/pytest-3/work", "/tmp/pytest-of-bob/pytest-41/work"),
    ("took 12 ms", "took 3.5 ms"),
]
OTHER = [
    ("2026-11-21T20:52:24Z", "2026-11-21T20:52:24"),
    ("/srv/atlas", "/tmp/atlas"),
    ("http://127.0.0.1:3872", "http://10.0.0.1:3872"),
    ("atlas-agent", "beacon-agent"),
    ("limit 5", "limit 10"),
    ("session_shutdown", "session_switch"),
    ("1780740000000", "12"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_volatile_values_are_taken_out(first: str, second: str) -> None:
    """Two runs of one thing read the same."""
    volatile = VolatileClasses()
    assert volatile.plain(first).skeleton == volatile.plain(second).skeleton


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_what_a_requirement_may_read_stays(first: str, second: str) -> None:
    """A time without its zone, a project in a tmp folder, another host and plain words stay apart."""
    volatile = VolatileClasses()
    assert volatile.plain(first).skeleton != volatile.plain(second).skeleton


def test_linked_values_are_kept_beside_the_text() -> None:
    """An id is kept to be compared with what it stands for elsewhere; a time is not."""
    plain = VolatileClasses().plain("ses_beb78faac4ec46a0b4dc18b26b at 2026-11-21T20:52:24Z")
    assert plain.links == (("id", "ses_beb78faac4ec46a0b4dc18b26b"),)


def test_durations_and_gauges_are_told_by_their_names() -> None:
    """A number under totalMs or pid is volatile; a timeout and a limit are chosen."""
    volatile = VolatileClasses()
    assert volatile.number("totalMs", 1.5, 900)
    assert volatile.number("pid", 1, 2)
    assert volatile.number("timestamp", 1780740000000, 1780999000123)
    assert not volatile.number("timeoutMs", 1, 2)
    assert not volatile.number("limit", 5, 10)


def test_a_class_can_be_kept() -> None:
    """What is kept is compared like anything else."""
    volatile = VolatileClasses(keep=["port", "duration", "header"])
    assert volatile.plain("127.0.0.1:3872").skeleton == "127.0.0.1:3872"
    assert not volatile.number("totalMs", 1, 2)
    assert not volatile.header("host")


def test_everything_can_be_kept() -> None:
    """With every class kept, a text is itself."""
    assert VolatileClasses(keep=NAMES).plain("2026-11-21T20:52:24Z").skeleton == "2026-11-21T20:52:24Z"


def test_a_class_of_ones_own_comes_first() -> None:
    """A user's pattern, groups and all, is taken out and linked."""
    plain = VolatileClasses(own=own_classes(["ticket=T(ICKET)?-([0-9]+)"])).plain("see TICKET-41")
    assert plain.links == (("ticket", "TICKET-41"),)
    assert "TICKET" not in plain.skeleton


@pytest.mark.parametrize("option", ["ticket", "=x", "Ticket=x", "ticket="])
def test_a_class_that_cannot_be_used_is_refused(option: str) -> None:
    """A pair without name or pattern is named with a remedy."""
    with pytest.raises(UsageError) as caught:
        own_classes([option])
    assert caught.value.where == "--volatile"
    assert caught.value.remedy


@pytest.mark.parametrize("pattern", ["(", "[a", "(?i)ticket", "(?P<c0>x)", "(?P<c5>x)", "(?P<number>x)"])
def test_a_pattern_that_cannot_stand_beside_others_is_refused(pattern: str) -> None:
    """The class is named whose pattern is broken, has flags for the whole, or has a group of a name that is taken."""
    with pytest.raises(UsageError, match="the pattern of 'ticket' does not compile among the others: ") as caught:
        VolatileClasses(own=own_classes(["number=(?P<number>1+)", f"ticket={pattern}"]))
    assert caught.value.where == "--volatile"
    assert caught.value.remedy


def test_a_class_that_does_not_exist_is_refused() -> None:
    """The nearest class is offered."""
    with pytest.raises(UsageError) as caught:
        VolatileClasses(keep=["uid"])
    assert caught.value.remedy == "--keep uuid"
