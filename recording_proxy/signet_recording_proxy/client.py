"""One client of the recorder: whether it is still there, and waiting for as long as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from signet_recording_proxy.faults import Fault
from signet_recording_proxy.recorder import Ongoing, Recorder


class Client:
    """Whether a client is there. `left_at` is the instant of `time.monotonic()` at which it left of its own wish."""

    def __init__(self, recorder: Recorder) -> None:
        self.left_at: float | None = None
        self._recorder = recorder
        self._gone = asyncio.Event()

    def left(self) -> None:
        """The client left of its own wish, now."""
        self.left_at = time.monotonic()
        self._gone.set()

    def sent_away(self) -> None:
        """The client was reset by the recorder: nobody waits for it any more."""
        self._gone.set()

    async def stays(self, fault: Fault, seconds: float | None) -> bool:
        """Wait `seconds` (None: no end), at most until the fault goes off or the client leaves; whether it stayed."""
        waiting = [asyncio.create_task(self._gone.wait()), asyncio.create_task(fault.off.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return not self._gone.is_set()

    def hears_the_end(self, exchange: Ongoing, then: Callable[[], None]) -> None:
        """Write the exchange's line, as `finish` does, and call `then`, which lets the client hear the end."""
        if self.left_at is None:
            self._recorder.answered(exchange, then)
        else:
            self.finish(exchange)
            then()

    def finish(self, exchange: Ongoing) -> None:
        """Write the exchange's line: answered, or cut off by the client at the instant at which it left."""
        if self.left_at is None:
            self._recorder.finish(exchange)
        else:
            self._recorder.finish(exchange, "client_closed", at=self.left_at)
