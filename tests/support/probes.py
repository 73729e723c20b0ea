"""Connectors of our own that each host loads whole, so that a connector which a host refuses hides nothing of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.stand_ins import FIXTURES

PROBES = {"codex": "codex.mjs", "claude-code": "claude_code.mjs"}
"""Each host that can be launched, with the installer of its probe."""


def write_probe(name: str, folder: Path) -> None:
    """Write the settings of a host's target in a folder, with the probe for its connector."""
    probes = FIXTURES / "probes"
    programs = {"signet": probes / "signet.mjs", "signet-mcp": FIXTURES / "mcp_server.mjs"}
    for program, path in programs.items():
        # A program's place is below the folder of the settings.
        (folder / f"{program}.mjs").symlink_to(path)
    places = ", ".join(f'{program} = [{{path = "{program}.mjs"}}]' for program in programs)
    (folder / "signet-conformance.toml").write_text(
        f"[targets.{name}]\nmodule = {json.dumps(str(probes / PROBES[name]))}\nprograms = {{{places}}}\n"
    )
    # The settings of no folder above are read.
    (folder / ".git").mkdir()
