"""Facts about the memory of what earlier runs showed."""

from __future__ import annotations

import json
from pathlib import Path

from signet_conformance import trace
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.running.scenario_choice import EarlierBreaches
from tests.support.trace_files import BREACHING, CONFORMING, write

AGENT = "SIG-AGENT-002"


def performed(path: Path, *, breach: bool) -> trace.Trace:
    """A recording of the scenario of a file's name, in which two calls have the wrong agent or not."""
    begins = {"kind": "mark", "seq": 90, "name": "scenario", "data": {"name": path.stem}}
    with write(path, BREACHING if breach else CONFORMING).open("a") as stream:
        stream.write(json.dumps(begins) + "\n")
    return trace.read(path)


def note(memory: Path, *traces: trace.Trace) -> EarlierBreaches:
    """Let the memory take in a run of these recordings, and read it anew."""
    judging = Judging(Terms(only=frozenset({AGENT})), whole=True)
    for judged in judging.judge_traces(traces):
        judging.add(judged)
    EarlierBreaches(memory).note(judging.conclude())
    return EarlierBreaches(memory)


def test_what_a_scenario_showed_is_kept_until_it_is_performed_again(tmp_path: Path) -> None:
    """A run of a part changes only what it performed."""
    memory = tmp_path / "shown" / "mine.json"
    broken = [performed(tmp_path / f"{name}.jsonl", breach=True) for name in ("plain", "tools")]
    assert note(memory, *broken).breached([AGENT]) == {AGENT: ["plain", "tools"]}
    assert note(memory, performed(tmp_path / "plain.jsonl", breach=False)).breached([AGENT]) == {AGENT: ["tools"]}
    assert note(memory, performed(tmp_path / "tools.jsonl", breach=False)).breached([AGENT]) == {}


def test_a_damaged_memory_is_as_good_as_none(tmp_path: Path) -> None:
    """It is read as empty, and written anew."""
    memory = tmp_path / "mine.json"
    memory.write_bytes(b'{"scenarios": [\xff')
    assert EarlierBreaches(memory).breached([AGENT]) == {}
    assert note(memory, performed(tmp_path / "plain.jsonl", breach=True)).breached([AGENT]) == {AGENT: ["plain"]}
