"""A hundred kinds of secrets through a real recorder: none stands in the recording, nor in anything made of it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.test_any_output import READING
from tests.attacks.test_secret_kinds import CODED, TOKENS, WRITTEN
from tests.support.command_line import Invoke
from tests.support.recorder import Call, RecorderProcess, Upstream

SAID = {
    **{f"token of {name}": (f"deploy with {token} please", token) for name, token in TOKENS.items()},
    **WRITTEN,
    **{name: (f"decode {text} please", text) for name, text in CODED.items()},
}
SECRETS = {secret for _, secret in SAID.values()}


def echoed(call: Call) -> None:
    """An answer that says what it was told, as daemons do with prompts and the output of commands."""
    told = json.loads(call.body) if call.body else {}
    call.answer(json.dumps({"inject": told.get("userMessage", ""), "stdout": told}).encode())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two recordings in which every secret was said, and all else that the recorder left."""
    folder = tmp_path_factory.mktemp("recorded")
    upstream = Upstream()
    path = "/api/hooks/user-prompt-submit"
    upstream.handlers[path] = echoed
    (folder / "temporary").mkdir()
    environment = {"TMPDIR": str(folder / "temporary"), "HOME": str(folder / "temporary")}
    recorder = RecorderProcess("--upstream", upstream.url, "--control", out=folder / "a.jsonl", environment=environment)
    try:
        for name in ("a.jsonl", "b.jsonl"):
            for number, (text, secret) in enumerate(SAID.values()):
                body = {
                    "harness": "openclaw",
                    "sessionKey": f"s-{number}",
                    "userMessage": text,
                    "runtimePath": "plugin",
                }
                target = f"{path}?project={quote(text)}" if number % 2 else path
                note = {} if "\n" in text else {"x_note": text}
                recorder.request("POST", target, json.dumps(body).encode(), **note)
                if "\n" not in text:
                    recorder.request("GET", f"/api/memory/{quote(text, safe='')}")
                recorder.command("mark", name="step", data={"step": "prompt", "session": f"s-{number}", "text": text})
                assert secret in text
            recorder.trace()
            if name == "a.jsonl":
                recorder.begin(folder / "b.jsonl")
    finally:
        recorder.close()
        upstream.close()
    return folder


def found_in(text: str) -> list[str]:
    """The secrets that text holds."""
    return [secret for secret in SECRETS if secret in text]


def test_no_secret_is_left_on_the_disk(recorded: Path) -> None:
    """Neither in a recording nor in a temporary folder."""
    texts = {file: file.read_bytes().decode("latin-1") for file in recorded.rglob("*") if file.is_file()}
    assert {file.name for file in texts} >= {"a.jsonl", "b.jsonl"}
    assert texts[recorded / "a.jsonl"].count("<redacted:") > 2 * len(SAID)
    assert {file.name: planted for file, text in texts.items() if (planted := found_in(text))} == {}


def test_no_secret_is_in_what_is_made_of_it(recorded: Path, invoke: Invoke, tmp_path: Path) -> None:
    """On the terminal, in a report of any format, in a comparison, in a capture that it is converted to."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    for words in READING.values():
        done = invoke(*words)
        assert done.exit_code in (0, 1), (words, done.output)
        assert found_in(done.output) == [], words
    made = [file for file in tmp_path.iterdir() if file.suffix != ".jsonl"]
    assert len(made) >= 8
    assert {file.name: planted for file in made if (planted := found_in(file.read_bytes().decode("latin-1")))} == {}
