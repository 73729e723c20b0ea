"""The probe of each host, in the host that the kit plays: it is loaded whole, and hears of everything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from signet_conformance import engine, targets, trace
from signet_conformance.finding import Verdict
from tests.support.probes import PROBES, write_probe

from .conftest import Recorded

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")
HOOKS = ("session-start", "user-prompt-submit", "pre-compaction", "session-end")


@needs_node
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_loaded_and_hears_of_everything(name: str, recorded: Recorded, tmp_path: Path) -> None:
    """A start, a prompt, a compaction and an end reach the daemon, and nothing of the installation is refused."""
    write_probe(name, tmp_path)
    (recording,) = map(trace.read, recorded(targets.load(name, tmp_path), ["compaction"]))
    paths = {exchange.request.path.rpartition("/")[2] for exchange in recording.exchanges}
    assert set(HOOKS) <= paths
    judged = engine.judge(recording).judgements
    assert judged["SIG-LOAD-001"].verdict is Verdict.PASS
    assert judged["SIG-LOAD-002"].verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE)
