"""Tool steps in the terms of a connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from signet_conformance.drivers.hosts.tools import SECRET_EXEC, SECRET_STATUS, use_tool

STEP = {"step": "tool", "tool": SECRET_EXEC, "arguments": {"command": "true"}}
TOOLS = (SECRET_EXEC, SECRET_STATUS)


@pytest.mark.parametrize(
    ("answer", "polls"), [({"jobId": "j1"}, ["j1"]), ({"id": "j2"}, ["j2"]), ({"stdout": "done"}, []), ({"id": 7}, [])]
)
def test_only_a_job_that_was_named_is_asked_for(answer: Mapping[str, Any], polls: list[str]) -> None:
    """A command that is answered at once has no job, and no model asks for the job `None`."""
    asked: list[str] = []

    def run(name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        if name == SECRET_EXEC:
            return json.dumps(answer), False
        asked.append(arguments["jobId"])
        return json.dumps({"status": "succeeded"}), False

    use_tool(STEP, TOOLS, {}, run)
    assert asked == polls
