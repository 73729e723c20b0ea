"""signet-driver/1 in Python: the harness of connector.py, played on standard input and output."""

import contextlib
import io
import json
import sys
import time
import traceback

from connector import Connector

connector = Connector()
sessions = {}
protocol = sys.stdout  # for answers alone
about = {"protocol": "signet-driver/1", "steps": ["start", "prompt", "end", "resume"]}


def model_turn(session):
    """Tell the kit that the model would be called now, and wait until its mark is written."""
    print(json.dumps({"event": "model", "session": session}), file=protocol, flush=True)
    sys.stdin.readline()


def perform(step):
    kind, name = step["step"], step["session"]
    if kind == "start":
        sessions[name] = connector.open(step.get("project", "/workspace"))
    elif kind == "prompt":
        injected = connector.prompt(sessions[name], step["text"])
        model_turn(name)
        sessions[name]["turns"] += [f"User: {step['text']}", f"Assistant: {step.get('reply', 'Understood.')}"]
        return {"injected": injected}
    elif kind == "end":
        connector.close(sessions[name])
    elif kind == "resume":
        connector.reopen(sessions[name])
    else:
        return {"skipped": f"the connector does nothing at {kind}"}
    return {"key": sessions[name]["key"]}


for line in iter(sys.stdin.readline, ""):
    request, began = json.loads(line), time.perf_counter()
    answer = {"id": request["id"], "ok": True, "result": about}
    try:
        if request["op"] == "step":
            printed = io.StringIO()  # what the connector prints: the kit looks for the token in it
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                result = perform(request["step"])
            answer["result"] = {**result, "printed": printed.getvalue()}
        elif request["op"] == "flush":
            connector.flush()
    except Exception as error:
        traceback.print_exc(limit=4)  # the kit shows the end of standard error
        answer = {"id": request["id"], "ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
    print(json.dumps({**answer, "ms": (time.perf_counter() - began) * 1000}), flush=True)
    if request["op"] == "exit":
        break
