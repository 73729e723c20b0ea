"""What a chat says to the daemon, recorded and judged by the kit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Verdict
from signet_conformance.trace import read
from tests.reference_harness.llm_server.served import Serve

from .conftest import COMMAND

CONFORMING = {Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE}
ACME = Path(__file__).with_name("acme")
"""The project, with a skill; to the daemon, one in a temporary folder would be noise."""
LINES = """\
Which database does the billing service use?
/memory
/compact
And which version of it?
/clear
Which colour has the roof?
/skill review the last change
/new
What is left to be done?
/resume
/resume 1
Go on.
/nothing
/tools
/quit
"""


@pytest.mark.skipif(ACME.is_relative_to("/tmp"), reason="a checkout in /tmp is noise to the daemon")
@pytest.mark.usefixtures("project")
def test_a_chat_leaves_a_conforming_recording(serve: Serve, tmp_path: Path) -> None:
    """Compaction, clear, a skill, another session and a resumed one: nothing fails, and nothing is warned of."""
    served = serve(turns=[{"content": "PostgreSQL 16."}], when_out="repeat")
    recording = tmp_path / "chat.jsonl"
    kit = [sys.executable, "-m", "signet_conformance.cli"]
    declared = ["--agent", "atlas", "--harness", "reference", "--no-check"]
    provider = ["--provider", "ollama", "--base-url", served.url, "--model", "scripted"]
    environ = {name: value for name, value in os.environ.items() if name != "SIGNET_DAEMON_URL"}
    done = subprocess.run(
        [*kit, "record", "--out", recording, *declared, "--", *COMMAND, *provider],
        cwd=ACME, env=environ, input=LINES, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PostgreSQL 16.") >= 6, done.stderr
    assert "there is no command /nothing; try /help" in done.stderr
    trace = read(recording)
    spoilt = {name: each.verdict for name, each in judge(trace).judgements.items() if each.verdict not in CONFORMING}
    assert spoilt == {}
    paths = [exchange.request.path.rpartition("/")[2] for exchange in trace.exchanges]
    told = [path for path in paths if path not in ("health", "mcp", "recall", "memories")]
    start, prompt, end = "session-start", "user-prompt-submit", "session-end"
    compaction = ["pre-compaction", "compaction-complete"]
    assert told == [
        start, prompt, *compaction, prompt, end,
        start, prompt, prompt, "skill-invocation", end,
        start, prompt, end,
        start, prompt, end,
    ]  # fmt: skip
