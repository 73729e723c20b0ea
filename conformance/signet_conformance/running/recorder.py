"""The client of the recorder process: it starts the recorder and speaks to its control channel."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import clean_environment
from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import KitError, printable
from signet_conformance.trace.marks import KitMark

READY_TIMEOUT_S = 60.0
CONTROL_TIMEOUT_S = 30.0
CANARY_VARIABLE = "SIGNET_CONFORMANCE_CANARY"


class Recorder:
    """The recorder process and its control channel."""

    def __init__(self, upstream: str, folder: Path, canary: str) -> None:
        command = [
            sys.executable, "-P", "-m", "signet_recording_proxy",
            "--upstream", upstream, "--out", str(folder / "before.jsonl"), "--control", "--canary-env", CANARY_VARIABLE,
        ]  # fmt: skip
        env = clean_environment(folder, **{CANARY_VARIABLE: canary})
        self._process = LineProcess("the recorder", command, env=env)
        self.url = str(self._process.receive(READY_TIMEOUT_S)["url"])

    def ask(self, *commands: Mapping[str, Any], timeout_s: float = CONTROL_TIMEOUT_S) -> None:
        """Send commands at once and wait for all answers; raise KitError when the recorder refuses one."""
        for command in commands:
            self._process.send(command)
        refused: KitError | None = None
        for command in commands:
            answer = self._process.receive(timeout_s)
            if answer.get("ok") is not True and refused is None:
                refused = KitError(
                    f"the recorder refused {command['op']}: {printable(answer.get('error'), 300)}",
                    remedy=answer.get("remedy"),
                )
        if refused is not None:
            raise refused

    def mark(self, says: KitMark) -> None:
        """Write a mark into the trace."""
        self.ask(mark(says))

    def close(self) -> None:
        """End it."""
        self._process.close()


def mark(says: KitMark) -> dict[str, Any]:
    """The recorder's command for a mark."""
    return {"op": "mark", "name": says.NAME, "data": says.data}
