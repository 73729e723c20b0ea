"""Every run as one stream of typed events, which a slow reader cannot slow.

    async with watch(session.identity, lambda told: session.turn(prompt, provider, listener=told)) as stream:
        async for event in stream:
            ...

Leaving the block before the stream is at its end cancels the run.
"""

from signet_reference_harness.events.event_queue import EventQueue
from signet_reference_harness.events.types import (
    Compacted,
    Event,
    Notice,
    RunFinished,
    RunStarted,
    StreamOverflow,
    Text,
    Thinking,
    ToolCalled,
    ToolReturned,
    as_json,
)
from signet_reference_harness.events.watching import Publisher, Watched, watch

__all__ = [
    "Compacted",
    "Event",
    "EventQueue",
    "Notice",
    "Publisher",
    "RunFinished",
    "RunStarted",
    "StreamOverflow",
    "Text",
    "Thinking",
    "ToolCalled",
    "ToolReturned",
    "Watched",
    "as_json",
    "watch",
]
