"""The clock of plugin hosts: a step puts it forward, and what timers are due for is done by then."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import START, Made, performed

EXTENSION = """
import { writeFileSync } from "node:fs";
const seen = [];
const note = (what) => writeFileSync(process.env.SEEN, JSON.stringify([...seen, what].slice(0, seen.push(what))));
export default () => {
  const began = Date.now();
  const after = (what) => () => note([what, Math.round((Date.now() - began) / 1000)]);
  setInterval(after("minute"), 60_000);
  setTimeout(after("once"), 90_000);
  setTimeout(after("far"), 600_000);
  clearInterval(setInterval(after("stopped"), 1000));
};
"""


def test_timers_run_when_their_time_has_come(runtime: str, made: Made, tmp_path: Path) -> None:
    """Two and a half minutes are over at once: what was due in them has run, in its order, and nothing else."""
    module, seen = tmp_path / "timers.mjs", tmp_path / "seen.json"
    module.write_text(EXTENSION)
    target = made("pi", module=str(module), runtime=runtime)
    wait = {"step": "wait", "session": "s1", "seconds": 150}
    performed(target, tmp_path / "home", [START, wait], SEEN=str(seen))
    assert json.loads(seen.read_bytes()) == [["minute", 60], ["once", 90], ["minute", 120]]
