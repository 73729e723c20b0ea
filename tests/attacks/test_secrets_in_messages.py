"""A hundred kinds of secrets in what a driver program says of its failure: none reaches a terminal, a report, a log."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.attacks.test_secret_kinds import CODED, TOKENS, WRITTEN, P
from tests.support import warm
from tests.support.drives import START

EXAMPLE = Path(__file__).parents[2] / "examples" / "driver-python"
TEXTS = [
    *(f"refused: {token} is no good" for token in TOKENS.values()),
    *(text for text, _ in WRITTEN.values()),
    *CODED.values(),
]
SECRETS = {*TOKENS.values(), *(secret for _, secret in WRITTEN.values()), *CODED.values(), P}

FAILS = """
import itertools, json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
texts = json.loads((folder / "texts.json").read_text())
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "step":
        # Each process says something else: who makes the folder has the number.
        for number in itertools.count():
            try:
                os.mkdir(folder / f"said-{number}")
                break
            except FileExistsError:
                pass
        text = texts[number % len(texts)]
        print(text, file=sys.stderr, flush=True)
        if HOW == "ends":
            sys.exit(3)
        if HOW == "garbles":
            print(text, flush=True)
        print(json.dumps({"id": request["id"], "ok": False, "error": {"message": text}}), flush=True)
    elif request["op"] == "exit":
        break
    else:
        print(json.dumps({"id": request["id"], "ok": True, "result": {}}), flush=True)
"""
CANNOT_BEGIN = """
import json, pathlib, sys
print("\\n".join(json.loads(pathlib.Path(__file__).with_name("texts.json").read_text())), file=sys.stderr)
sys.exit(1)
"""


@pytest.mark.parametrize(("how", "first"), [("refuses", 0), ("ends", 40), ("garbles", 80), ("cannot begin", 0)])
def test_no_secret_is_shown(how: str, first: int, tmp_path: Path) -> None:
    """By its answers, by its end, by what is no answer, and before its first answer: whatever it says is redacted."""
    connector, temporary = tmp_path / "connector", tmp_path / "temporary"
    shutil.copytree(EXAMPLE, connector)
    temporary.mkdir()
    texts = (TEXTS + TEXTS)[first : first + 40]
    (connector / "texts.json").write_text(json.dumps(texts))
    # A process, and so a text, for each.
    scenarios = [{"name": f"session-{number}", "steps": [START]} for number in range(len(texts))]
    (connector / "sessions.json").write_text(json.dumps({"scenarios": scenarios}))
    (connector / "driver.py").write_text(CANNOT_BEGIN if how == "cannot begin" else FAILS.replace("HOW", repr(how)))
    command = ["run", "example-python", "--scenario", "sessions.json", "--report", "report"]
    words = [sys.executable, "-m", "signet_conformance.cli", *command]
    done = warm.finished(words, connector, {**os.environ, "TMPDIR": str(temporary)}, 120)
    assert done.returncode in (2, 3, 4), done.stdout + done.stderr
    left = [file for folder in (connector / "report", temporary) for file in folder.rglob("*") if file.is_file()]
    said = done.stdout + done.stderr + "".join(file.read_text("utf-8", "replace") for file in left)
    assert "<redacted:" in done.stdout + done.stderr
    assert [secret for secret in SECRETS if secret in said] == []
