"""Facts about a request to a model: which exchanges are one, what is read of it, what people are shown of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.rules.model.requests import (
    count_lines,
    marker_lines,
    occurrences,
    padded,
    plain_words,
    results,
    says_left_out,
)
from signet_conformance.rules.model.turns import model_requests

from .model_requests import Item, model
from .model_turns import recorded

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def as_read(folder: Path, *items: Item) -> list[tuple[int, bool]]:
    """The numbers of the requests that ask the model something, and whether each was read whole."""
    return [(request.seq, request.whole) for request in model_requests(recorded(folder, items))]


def test_only_what_is_posted_to_a_model_asks_it(tmp_path: Path) -> None:
    """Other methods and other paths ask nothing; a body that cannot be read asks something unknown."""
    body = {"messages": []}

    def sent(method: str, path: str, **more: object) -> Item:
        return {"side": "model", "request": {"method": method, "path": path, "body": body, **more}}

    cut = {"cut": True, "size": 9, "sha256": "0" * 64}
    assert as_read(
        tmp_path,
        sent("GET", "/v1/messages"), sent("PUT", "/v1/messages"), sent("POST", "/v1/messages/count_tokens"),
        sent("POST", "/v1/messages"), sent("POST", "/anthropic/v1/messages/"), sent("POST", "/messages/batches"),
        sent("POST", "/api/chat", raw_body=cut), sent("POST", "/api/generate", body=None),
        sent("POST", CHAT, raw_body={"text": "no JSON", "media_type": "text/plain"}), sent("POST", RESPONSES),
    ) == [(4, True), (5, True), (7, False), (8, False), (9, False), (10, True)]  # fmt: skip


Said = tuple[str, str, str | None, bool]
Used = tuple[str | None, str, str]
PARTS: list[tuple[str, object, str, list[Said]]] = [
    (
        "messages",
        {"system": [{"type": "text", "text": "S1"}, {"type": "text", "text": "S2"}], "messages": [
            {"role": "user", "content": [{"type": "text", "text": "U"}, {"type": "image", "source": {}}]},
            {"role": "assistant", "content": "A"},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [
                    {"type": "text", "text": "R1"}, {"type": "text", "text": "R2"},
                ]},
                {"type": "tool_result", "tool_use_id": "c2", "content": "R"},
            ]},
        ]},
        "/v1/messages",
        [("system", "S1\nS2", None, False), ("user", "U", None, False), ("assistant", "A", None, False),
         ("result", "R1\nR2", "c1", True), ("result", "R", "c2", False)],
    ),
    (
        "chat",
        {"messages": [
            {"role": "system", "content": "S"}, {"role": "developer", "content": "D"},
            {"role": "user", "content": [
                {"type": "text", "text": "U1"}, {"type": "image_url"}, {"type": "text", "text": "U2"},
            ]},
            {"role": "assistant", "content": None}, {"role": "function", "content": "F"},
            {"role": "tool", "tool_call_id": "c1", "content": "R"}, {"role": "bystander", "content": "B"}, "odd",
        ]},
        CHAT,
        [("system", "S", None, False), ("system", "D", None, False), ("user", "U1\nU2", None, False),
         ("result", "F", None, False), ("result", "R", "c1", False), ("user", "B", None, False)],
    ),
    (
        "responses",
        {"instructions": "S", "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "U"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "R"}, {"type": "reasoning"},
        ]},
        RESPONSES,
        [("system", "S", None, False), ("user", "U", None, False), ("assistant", "A", None, False),
         ("result", "R", "c1", False)],
    ),
    ("responses, bare", {"input": "U"}, RESPONSES, [("user", "U", None, False)]),
    ("generate", {"system": "S", "prompt": "U"}, "/api/generate",
     [("system", "S", None, False), ("user", "U", None, False)]),
    ("nothing", {}, "/api/generate", []),
]  # fmt: skip


@pytest.mark.parametrize(("body", "path", "parts"), [row[1:] for row in PARTS], ids=[row[0] for row in PARTS])
def test_who_says_what(body: object, path: str, parts: list[Said], tmp_path: Path) -> None:
    """Each format's texts in order: the system's, the user's, the model's and results of tools with their calls."""
    (request,) = model_requests(recorded(tmp_path, [model(body, path)]))
    assert [(part.role, part.text, part.call, part.failed) for part in request.parts] == parts
    assert not request.chained


USES: list[tuple[str, object, str, list[Used]]] = [
    (
        "messages",
        {"messages": [{"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"query": "x"}},
            {"type": "voice", "id": "c2", "name": "g", "input": {}},
        ]}]},
        "/v1/messages",
        [("c1", "f", '{"query": "x"}')],
    ),
    (
        "chat",
        {"messages": [{"role": "assistant", "tool_calls": [
            {"id": "c1", "function": {"name": "f", "arguments": '{"query":"x"}'}},
            {"function": {"name": "g", "arguments": {"query": "y"}}}, {"id": "c3"},
        ]}]},
        CHAT,
        [("c1", "f", '{"query":"x"}'), (None, "g", '{"query": "y"}')],
    ),
    (
        "responses",
        {"input": [
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"query":"x"}'},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "y"},
        ]},
        RESPONSES,
        [("c1", "f", '{"query":"x"}'), ("c2", "g", "y")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "path", "uses"), [row[1:] for row in USES], ids=[row[0] for row in USES])
def test_which_tools_the_model_called(body: object, path: str, uses: list[Used], tmp_path: Path) -> None:
    """Each format's calls with the arguments as JSON text; without an id where the format has none."""
    (request,) = model_requests(recorded(tmp_path, [model(body, path)]))
    assert [(use.id, use.name, use.arguments) for use in request.uses] == uses


@pytest.mark.parametrize(
    ("calls", "answers", "told"),
    [
        (["c1", "c2"], ["c2", "c1"], [("g", "of c2"), ("f", "of c1")]),
        ([None, None], [None, None], [("f", "of None"), ("g", "of None")]),
        (["c1", "c2"], ["c3", "c2"], [("g", "of c2")]),
        (["c1"], [None, None], [("f", "of None")]),
        (["c1", "c2"], ["c1", "c1"], [("f", "of c1")]),
    ],
    ids=["in another order", "without ids", "of an unknown call", "more than calls", "twice"],
)
def test_which_call_a_result_is_of(
    calls: list[str | None], answers: list[str | None], told: list[tuple[str, str]], tmp_path: Path
) -> None:
    """By its id; the next one where it has none."""
    uses = [{"id": call, "function": {"name": name}} for call, name in zip(calls, "fg", strict=False)]
    said = [{"role": "tool", "tool_call_id": call, "content": f"of {call}"} for call in answers]
    body = {"messages": [{"role": "assistant", "tool_calls": uses}, *said]}
    (request,) = model_requests(recorded(tmp_path, [model(body, CHAT)]))
    assert [(use.name, part.text) for use, part in results(request)] == told


def test_which_tools_a_request_offers(tmp_path: Path) -> None:
    """By the name of the function, the tool's own name, or the kind of one that the server runs."""
    offered = [
        {"type": "function", "function": {"name": "f"}},
        {"name": "g", "type": "custom"},
        {"type": "web_search"},
        "odd",
    ]
    (request,) = model_requests(recorded(tmp_path, [model({"messages": [], "tools": offered}, CHAT)]))
    assert request.tools == ("f", "g", "web_search")


def test_people_are_shown_the_beginnings_of_the_last_four_texts(tmp_path: Path) -> None:
    """Of a text of more than 120 characters 119 are shown; what the model said and tools returned is left out."""
    messages = [{"role": "user", "content": "x" * size} for size in (3, 119, 120, 121, 122)]
    messages += [{"role": "assistant", "content": "A"}, {"role": "tool", "content": "R"}]
    (request,) = model_requests(recorded(tmp_path, [model({"messages": messages}, CHAT)]))
    assert request.excerpt == " | ".join(["x" * 119, "x" * 120, "x" * 119 + "…", "x" * 119 + "…"])
    (short,) = model_requests(recorded(tmp_path, [model({"messages": [{"role": "user", "content": " a\n b "}]}, CHAT)]))
    assert short.excerpt == "a b"


# -- wording


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Atlas\n  deploys", "atlas deploys"),
        (r"Atlas\ndeploys\ton", "atlas deploys on"),
        (r"caf\u00e9 \\u00e9t\\u00e9", "café été"),
        ("it&#39;s &lt;b&gt;bold&lt;/b&gt;", "it s b bold b"),
        ("<redacted:email 1>", "redacted email 1"),
        ("a <redacted:token> b", "a b"),
        ("snake_case", "snake case"),
        ("STRASSE straße", "strasse strasse"),
        ("…", ""),
    ],
)
def test_the_words_of_a_text(text: str, words: str) -> None:
    """Markup, escapes, signs and case are none of them."""
    assert plain_words(text) == words


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("aaaa bbbb cccc", ("aaaa bbbb cccc",)),
        ("aaaa bbbb ccc", ()),
        ("aaaaaaa bbbbbbbbbbb", ()),
        ("aaaa bbbb cccc dddd", ("aaaa bbbb cccc dddd",)),
        ("a b c d e f g h", ("a b c d e f g h",)),
        ("a b c d e f", ()),
        ("Short words\nof two lines", ("short words of two lines",)),
        ("Short words\nA line of many words\nA line of many words", ("a line of many words",)),
        ("", ()),
    ],
)
def test_the_lines_that_a_text_is_known_by(text: str, lines: tuple[str, ...]) -> None:
    """Lines of three words and fourteen letters, blanks included; the whole text where no line is so long."""
    assert marker_lines(text) == lines


def test_how_much_of_a_text_stands_in_another() -> None:
    """Whole words count; half of the lines are most of it, none never are, not even of none."""
    lines = tuple(f"line number {word}" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight"))
    for present, mostly in ((0, False), (1, False), (3, False), (4, True), (8, True)):
        here = count_lines(lines, padded(lines[:present]))
        assert (here.present, here.total, here.absent, here.mostly) == (present, 8, present == 0, mostly)
    assert count_lines(lines[:2], padded(lines[:1])).mostly
    assert not count_lines((), padded(lines)).mostly
    assert count_lines(lines[:1], padded(["line number oneness"])).absent


def test_how_often_a_line_stands_in_a_text() -> None:
    """Two that share a blank are two, and two texts are apart."""
    assert occurrences("a b", padded(["a b a b", "x a", "b a b"])) == 3


@pytest.mark.parametrize("note", ["[truncated]", "output shortened", "12 more lines", "a...", "Cut off here", "…"])
def test_a_text_may_say_that_something_was_left_out(note: str) -> None:
    """In the words that programs use for it, in either case."""
    given = "Atlas deploys happen on Friday.\nRefunds need approval from Mira."
    found = ["atlas deploys happen on friday"]
    assert says_left_out(f"Atlas deploys happen on Friday. {note}", found, given)
    assert says_left_out(f"Preview, {note}:\nAtlas deploys happen on Friday.", found, given)
    assert not says_left_out("Atlas deploys happen on Friday. A trimming of the hedge", found, given)
    # Not near the line, of no line that is there, and in the words of the text itself.
    assert not says_left_out(f"Atlas deploys happen on Friday. {'More of the prompt. ' * 30} {note}", found, given)
    assert not says_left_out(f"All of it. {note}", found, given)
    assert not says_left_out(f"Atlas deploys happen on Friday. {note}", found, f"{given} {note}")


def test_a_log_of_twenty_thousand_notices_is_read_once() -> None:
    """What a notice costs does not grow with the text before it: this ends."""
    given = "Atlas deploys happen on Friday."
    log = "the build goes on ... and says more about itself\n" * 20_000
    assert not says_left_out(f"{given}\n{'Nothing is missing here. ' * 30}\n{log}", marker_lines(given), given)
    assert says_left_out(f"{log}{given}", marker_lines(given), given)
