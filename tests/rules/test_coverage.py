"""Facts about whether a recording tests a connector at all: a green that rests on nothing is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from signet_conformance.rules.coverage import was_tested

from .step_items import CLOSED, OPENED, POLICY, PROBE, Item, prompt, save, start, step

REFUSED = {**start(), "response": {"status": 401, "body": {"error": "no"}}}
MADE = {**REFUSED, "fault": {"kind": "status"}}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], False),
        ([PROBE, POLICY], False),
        ([start()], True),
        ([save("k1")], True),
        ([REFUSED], True),
        ([step("start")], False),
        ([step("start"), PROBE], False),
        ([step("start"), start()], True),
        ([step("start"), save("k1")], True),
        ([step("start"), REFUSED], False),
        ([step("start"), REFUSED, step("prompt"), prompt()], True),
        ([step("start"), MADE], False),
        ([step("start"), CLOSED, start()], False),
        ([step("start"), CLOSED, start(), OPENED, step("prompt"), prompt()], True),
    ],
    ids=["empty", "probes", "a hook", "a memory", "a refused hook", "a step", "a probe in a step", "a hook in a step",
         "a memory in a step", "refused in a step", "refused and accepted", "refused by a fault", "in an outage",
         "after an outage"],
)  # fmt: skip
def test_what_tests_a_connector(recorded: Any, items: Sequence[Item], expected: bool) -> None:
    """Of a recording of a user any hook or memory operation does, of a driven one only one that is accepted."""
    assert was_tested(recorded(*items)) is expected
