"""Changes of a text that no template can express, by the name that schemas/mutants.schema.json lists."""

from __future__ import annotations

import html
import json
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

_LONG = 300_000
"""Characters: past what the recorder keeps of a body as JSON."""
_KEPT_CONTROLS = "\t\n"


def _swapped_turns(transcript: str) -> str:
    """A transcript of JSON lines in which each reply stands before what it answers."""
    lines = transcript.split("\n")
    for index in range(len(lines) - 1):
        if json.loads(lines[index]).get("role") == "user" and json.loads(lines[index + 1]).get("role") == "assistant":
            lines[index], lines[index + 1] = lines[index + 1], lines[index]
    return "\n".join(lines)


def _turns(transcript: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in transcript.split("\n") if line.strip()]


def _lines(turns: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(turn) for turn in turns)


def _named_speakers(transcript: str) -> str:
    """A transcript of JSON lines as text in which each turn begins with who speaks."""
    speakers = {"user": "User", "assistant": "Assistant"}
    return "\n".join(f"{speakers[turn['role']]}: {turn['content']}" for turn in _turns(transcript))


def _human_speakers(transcript: str) -> str:
    return _named_speakers(transcript).replace("User: ", "human: ").replace("Assistant: ", "ASSISTANT: ")


def _bold_speakers(transcript: str) -> str:
    """Turns as Markdown, which is a shape that has no turns."""
    speakers = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join(f"**{speakers[turn['role']]}:** {turn['content']}" for turn in _turns(transcript))


def _nested_turns(transcript: str) -> str:
    """Each turn inside `message`, with a type beside it, as some hosts keep their transcripts."""
    return _lines([{"type": turn["role"], "message": turn} for turn in _turns(transcript)])


def _turns_in_parts(transcript: str) -> str:
    """Each turn's content as a list of parts."""
    return _lines([{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in _turns(transcript)])


def _with_tool_turns(transcript: str) -> str:
    """A turn of a tool, whose role is neither the user's nor the model's, before each reply."""
    turns = []
    for turn in _turns(transcript):
        if turn["role"] == "assistant":
            turns.append({"role": "tool", "content": "2 rows", "name": "memory_search"})
        turns.append(turn)
    return _lines(turns)


def _swapped_speakers(transcript: str) -> str:
    other = {"user": "assistant", "assistant": "user"}
    return _lines([{**turn, "role": other[turn["role"]]} for turn in _turns(transcript)])


def _without_replies(transcript: str) -> str:
    return _lines([turn for turn in _turns(transcript) if turn["role"] == "user"])


def _without_last_reply(transcript: str) -> str:
    turns = _turns(transcript)
    return _lines(turns[:-1] if turns and turns[-1]["role"] == "assistant" else turns)


def _in_one_line(transcript: str) -> str:
    """Each turn's text in one line, as connectors write it that give a line to each turn."""
    return _lines([{**turn, "content": " ".join(turn["content"].split())} for turn in _turns(transcript)])


def _enveloped(transcript: str) -> str:
    """The time before what the user said, as some hosts put it there."""
    stamp = {"user": "[Sun 2026-11-22 20:06 UTC] ", "assistant": ""}
    return _lines([{**turn, "content": stamp[turn["role"]] + turn["content"]} for turn in _turns(transcript)])


def _without_controls(text: str) -> str:
    return "".join(
        character for character in text if character in _KEPT_CONTROLS or unicodedata.category(character) != "Cc"
    )


REWRITERS: Mapping[str, Callable[[str], str]] = {
    "swapped_turns": _swapped_turns,
    "named_speakers": _named_speakers,
    "human_speakers": _human_speakers,
    "bold_speakers": _bold_speakers,
    "nested_turns": _nested_turns,
    "turns_in_parts": _turns_in_parts,
    "with_tool_turns": _with_tool_turns,
    "swapped_speakers": _swapped_speakers,
    "turns_twice": lambda transcript: _lines([turn for turn in _turns(transcript) for _ in range(2)]),
    "turns_once": lambda transcript: "\n".join(dict.fromkeys(transcript.split("\n"))),
    "last_turns": lambda transcript: _lines(_turns(transcript)[-8:]),
    "without_replies": _without_replies,
    "without_first_turn": lambda transcript: _lines(_turns(transcript)[1:]),
    "without_last_reply": _without_last_reply,
    "in_one_line": _in_one_line,
    "enveloped": _enveloped,
    "crlf": lambda text: re.sub(r"\r?\n", "\r\n", text),
    "lf": lambda text: text.replace("\r\n", "\n"),
    "padded": lambda text: f"\n  {text} \n",
    "trimmed": str.strip,
    "without_controls": _without_controls,
    "long": lambda text: text + " and so on" * (_LONG // 10),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "compatible": lambda text: unicodedata.normalize("NFKC", text),
    "mojibake": lambda text: text.encode("utf-8", "replace").decode("latin-1"),
    "question_marks": lambda text: text.encode("ascii", "replace").decode("ascii"),
    "without_astral": lambda text: "".join(character for character in text if ord(character) <= 0xFFFF),
    "first_500": lambda text: text[:500],
    "first_64_ki": lambda text: text[: 64 * 1024],
    "first_128_ki": lambda text: text[: 128 * 1024],
    "first_line": lambda text: text.split("\n", 1)[0],
    "without_tag": lambda text: re.sub(r"^\[[^\]]*\]\s*", "", text),
    "html": html.escape,
    "in_a_url": urllib.parse.quote,
    "lower_case": str.lower,
}
