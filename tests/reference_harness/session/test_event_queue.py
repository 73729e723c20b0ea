"""The queue of a reader: it never waits, loses only pieces of text and thinking, and says how many."""

from __future__ import annotations

import threading

from hypothesis import given, strategies as st

from signet_reference_harness.session.events import (
    Compacted,
    Event,
    RunFinished,
    RunSummary,
    StreamOverflow,
    TextPiece,
    ThinkingPiece,
    ToolCalled,
)
from signet_reference_harness.session.watching import EventQueue

FINISHED = RunFinished("Hi.", RunSummary(status="done"))
EVENTS = st.one_of(
    st.builds(TextPiece, st.text(max_size=3)),
    st.builds(ThinkingPiece, st.text(max_size=3)),
    st.just(Compacted("They said hello.")),
    st.just(ToolCalled("c1", "memory_search", {"query": "port"})),
)


@given(st.lists(EVENTS | st.none(), max_size=40), st.integers(1, 6))
def test_a_slow_reader_loses_only_what_may_be_lost_and_is_told_how_much(
    events: list[Event | None], capacity: int
) -> None:
    """Every other event arrives in its order; each gap stands in its place with the number of events that it took."""
    queue, read = EventQueue(capacity), list[Event]()
    for event in (*events, FINISHED):
        if event is None:
            read += queue.take()
        else:
            queue.publish(event)
    read += queue.take()
    put = [event for event in (*events, FINISHED) if event is not None]
    place = 0
    for event in read:
        if isinstance(event, StreamOverflow):
            lost = put[place : place + event.dropped]
            assert len(lost) == event.dropped > 0
            assert all(each.droppable for each in lost)
            place += event.dropped
        else:
            assert event is put[place]
            place += 1
    assert place == len(put)


def test_no_more_than_its_capacity_is_held_of_what_may_be_lost() -> None:
    """However much a model says, four pieces are held, and one event that tells of the rest."""
    queue = EventQueue(4)
    for number in range(10_000):
        queue.publish(TextPiece(str(number)))
    assert queue.take() == [*(TextPiece(str(number)) for number in range(4)), StreamOverflow(9_996)]


def test_a_queue_without_a_capacity_loses_nothing() -> None:
    """What a person reads as text is whole, however late it is read."""
    queue = EventQueue(None)
    for number in range(10_000):
        queue.publish(TextPiece(str(number)))
    taken = queue.take()
    assert "".join(event.text for event in taken if isinstance(event, TextPiece)) == "".join(map(str, range(10_000)))


def test_what_waits_for_a_slow_reader_takes_hardly_more_room_than_its_text() -> None:
    """Pieces of one kind become one event where many wait already; words and thinking keep their order."""
    queue = EventQueue(None)
    for _ in range(100_000):
        queue.publish(TextPiece("a"))
    for _ in range(100_000):
        queue.publish(ThinkingPiece("b"))
    queue.publish(TextPiece("c"))
    taken = queue.take()
    assert len(taken) < 5_000
    assert taken[-1] == TextPiece("c")
    assert "".join(event.text for event in taken if isinstance(event, ThinkingPiece)) == "b" * 100_000


def test_nothing_follows_the_last_event() -> None:
    """What a tool still says after the end is not part of the run."""
    queue = EventQueue()
    queue.publish(FINISHED)
    queue.publish(TextPiece("late"))
    assert (queue.take(), queue.wait_and_take()) == ([FINISHED], [])


def test_a_thread_reads_while_the_run_writes() -> None:
    """Each event reaches a reader in another thread, in order."""
    queue, read = EventQueue(None), list[Event]()

    def collect() -> None:
        while events := queue.wait_and_take():
            read.extend(events)

    reader = threading.Thread(target=collect)
    reader.start()
    put = [*(TextPiece(str(number)) for number in range(1_000)), FINISHED]
    for event in put:
        queue.publish(event)
    reader.join()
    assert read == put
