"""The scripted model of `signet-harness llm` as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from signet_conformance.children.processes import LineProcess

START_S = 60.0
MODEL_VARIABLE = "SIGNET_CONFORMANCE_MODEL"
"""The variable with the address of the model that a real program gets."""
CONTROL_VARIABLE = "SIGNET_CONFORMANCE_MODEL_CONTROL"
"""The variable with the address at which the server's answers are set, past its recorder."""


class ModelProcess(LineProcess):
    """The server, at `url`, which keeps requests waiting until their answers are set."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-P", "-m", "signet_reference_harness.cli", "llm", "--until-stdin-closes"]
        super().__init__("the scripted model", command, env=env)
        try:
            self.url = str(self.receive(START_S)["url"])
        except BaseException:
            self.close()
            raise
