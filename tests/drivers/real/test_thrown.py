"""Who threw the error that ended a program, by its own last words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_conformance.drivers.hosts.real.refusals import is_of_the_kit, thrown_by

EXTENSIONS, OBSERVER = Path("/home/u/.pi/agent/extensions"), Path("/home/u/.pi/agent/extensions/observer.js")
OURS, THEIRS = "at f (file:///home/u/.pi/agent/extensions/signet-pi.js:10:3)", "at g (/opt/pi/dist/cli.js:99:1)"
DAEMON = "http://127.0.0.1:3851"
RUNTIME = "at node:internal/deps/undici/undici:13502:13"


@pytest.mark.parametrize(
    "stack",
    [
        ["Error: no", OURS, THEIRS],
        ["TypeError: fetch failed", RUNTIME, "at process.processTicksAndRejections (node:internal/a:1:2)", OURS],
        ["error: no", "at <anonymous> (/home/u/.pi/agent/extensions/signet-pi.js:10:3)"],
        ["Error: no", "at file:///home/u/.pi/agent/extensions/signet%20pi.js:10:3"],
        ["TypeError: fetch failed", f"{RUNTIME} {{", "[cause]: Error: connect ECONNREFUSED 127.0.0.1:3851", "}"],
        [
            "TypeError: fetch failed",
            f"{RUNTIME} {{",
            "[cause]: SocketError: other side closed",
            f"{RUNTIME} {{",
            "remotePort: 3851,",
            "}",
            "}",
            "",
            "Node.js v20.20.2",
        ],
        [
            "TypeError: fetch failed",
            f"{RUNTIME} {{",
            "[cause]: AggregateError",
            f"{RUNTIME} {{",
            "[errors]: [",
            "Error: connect ECONNREFUSED ::1:3851",
            f"{RUNTIME} {{",
            "port: 3851",
            "},",
            "]",
            "}",
            "}",
        ],
        ["error: Unable to connect. It failed", 'path: "http://127.0.0.1:3851/health",', "errno: 0,", "Bun v1.3.3 (x)"],
        ["error: It failed", 'code: "X"', "at f (/home/u/.pi/agent/extensions/signet-pi.js:10:3)", "Bun v1.3.3 (x)"],
        ["Error: of before", THEIRS, "a line of the log", "Uncaught Error: no", OURS, "", "Node.js v20.20.2"],
    ],
    ids=["node", "fetch", "bun", "a blank", "refused", "closed", "both closed", "refused in bun", "of bun", "the last"],
)
def test_error_of_the_connector(stack: Sequence[str]) -> None:
    """It is told with its stack, and with nothing that stands before it or after."""
    told = thrown_by(["a line of the log", *stack], [EXTENSIONS], [OBSERVER], DAEMON)
    assert told is not None
    assert "a line of the log" not in told
    assert [each for each in ("Node.js", "Bun v", "[cause]", "{", "code:") if each in told] == []
    assert told.splitlines()[0].endswith(("no", "failed"))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["panic: the index is out of bounds"],
        ["Error: no", THEIRS, OURS],
        ["Error: no", RUNTIME],
        ["Error: no", "at f (file:///home/u/.pi/agent/extensions/observer.js:3:1)", OURS],
        ["Error: no", "at f (file:///home/u/.pi/agent/extensions-of-another/x.js:3:1)"],
        ["Error: of before", OURS, "a line of the log", "RangeError: of the program", THEIRS],
        ["Error: no", "a line of the log", OURS],
        ["TypeError: fetch failed", RUNTIME, "[cause]: Error: connect ECONNREFUSED 127.0.0.1:38511"],
        ["TypeError: fetch failed", RUNTIME, "[cause]: Error: connect ECONNREFUSED 203.0.113.7:3851"],
        ["connected to 127.0.0.1:3851", "TypeError: fetch failed", RUNTIME],
        ["TypeError: fetch failed", RUNTIME, "Node.js v20.20.2", "connected to 127.0.0.1:3851"],
        ["TypeError: fetch failed", f"{THEIRS} {{", "[cause]: Error: connect ECONNREFUSED 127.0.0.1:3851", "}"],
        ["Error: no", OURS, "the extension goes on without its daemon"],
        ["Error: no", OURS, "RangeError: of the program", THEIRS],
        ["Error: no", "{", OURS, "}", "the state of before: x"],
        ["SyntaxError: Unexpected token {", OURS, "the extension goes on without its daemon"],
    ],
    ids=[
        "silent",
        "no error",
        "the program's",
        "the runtime's",
        "the observer's",
        "elsewhere",
        "of before",
        "apart",
        "another port",
        "another host",
        "said before",
        "said after it",
        "the program's request",
        "logged",
        "logged before",
        "in a log",
        "logged with a bracket",
    ],
)
def test_error_of_somebody_else(words: Sequence[str]) -> None:
    """Who is not known to have thrown is not accused."""
    assert thrown_by(words, [EXTENSIONS], [OBSERVER], DAEMON) is None


def test_a_member_that_only_looks_like_a_place_is_not_the_kit_s(tmp_path: Path) -> None:
    """A raised 2 is a digit and no number."""
    assert not is_of_the_kit({"a.json": {"list": [1]}}, tmp_path, "a.json", "list.\u00b2", "is odd")
