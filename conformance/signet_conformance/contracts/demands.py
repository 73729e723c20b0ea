"""The failures that the suites raise when a plug-in breaks its contract."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import pytest

Given = TypeVar("Given")
LONGEST_S = 60.0


def demand(fact: object, otherwise: str) -> None:
    """Fail the test with `otherwise` unless `fact` holds."""
    if not fact:
        pytest.fail(otherwise, pytrace=False)


def undeclared(what: str) -> NoReturn:
    """Skip a test of what the author did not say how to make."""
    pytest.skip(f"the suite is not told how: override {what}")


def finished(work: Coroutine[Any, Any, Given]) -> Given:
    """What `work` gives. The test fails when it takes longer than a minute."""

    async def within_bound() -> Given:
        return await asyncio.wait_for(work, LONGEST_S)

    try:
        return asyncio.run(within_bound())
    except TimeoutError:
        pytest.fail(f"it was not done within {LONGEST_S:g} s", pytrace=False)
