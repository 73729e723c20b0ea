"""A driver program that sends nothing: `python bare_driver.py MODE`, how it answers the halves of a compaction."""

from __future__ import annotations

import json
import sys

HALVES = ("pre_compaction", "compaction_complete")
mode = sys.argv[1]


def answer(request: dict[str, object]) -> dict[str, object]:
    """What is said to one request."""
    step = request.get("step")
    kind = step["step"] if isinstance(step, dict) else None
    if request["op"] == "hello" and mode == "lists":
        return {"ok": True, "result": {"steps": ["start", "prompt", "end"]}}
    if kind in HALVES and mode == "refuses":
        return {"ok": False, "error": {"type": "StepError", "message": f"there is no step {kind}"}}
    if kind in HALVES and mode == "skips":
        return {"ok": True, "result": {"skipped": "compactions are one step here"}}
    if kind in HALVES and mode == "ends":
        sys.exit(3)
    return {"ok": True, "result": {}}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "ms": 0.1, **answer(asked)}), flush=True)
    if asked["op"] == "exit":
        break
