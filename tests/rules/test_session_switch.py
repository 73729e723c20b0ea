"""Facts about a switch of sessions while nothing listened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def hook(operation: str, key: str) -> Item:
    """A hook of a session."""
    body = {**KEYED, "sessionKey": key, "userMessage": "next"}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    return {"request": request, "response": {"status": 200, "body": {}}}


def step(kind: str, session: str, index: int) -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session=session, index=index, text="next")


AWAY, BACK = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)


@pytest.mark.parametrize(("between", "expected"), [((AWAY, BACK), "INCONCLUSIVE"), ((), "WARN")])
def test_end_that_met_nobody_listening_may_come_late(tmp_path: Path, between: tuple[Item, ...], expected: str) -> None:
    """The user ended the old session in an outage, which leaves no exchange: that its end comes late is no breach."""
    ended = [*between[:1], step("end", "s1", 1), *between[1:]]
    old = [step("start", "s1", 0), hook("session-start", "k-1"), *ended]
    new = [step("start", "s2", 2), hook("session-start", "k-2"), step("prompt", "s2", 3)]
    late = [hook("user-prompt-submit", "k-2"), hook("session-end", "k-1")]
    judged = judge(build(tmp_path / "trace.jsonl", [*old, *new, *late]))
    assert judged.judgements["SIG-END-010"].verdict == expected
