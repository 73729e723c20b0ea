"""Work that a cancellation does not cut in two: a hook that was begun is told to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Value = TypeVar("Value")


async def uninterrupted(work: Coroutine[Any, Any, Value]) -> Value:
    """What `work` comes to. Where the caller is cancelled meanwhile, `work` is finished first, and its value lost."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
