"""What is drawn in a terminal."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from signet_reference_harness.channels.drawing import Blocks, Drawing, in_brief, one_line

HOSTILE = "a\x1b[31mb\x1b]8;;http://evil.example\x07c\u202ed\x00e\x9bf\u2066g\rh"


def plain(drawing: Drawing, text: str, width: int = 40) -> list[str]:
    """The rows that show a block of Markdown, without styles."""
    return drawing.ansi(drawing.model_block(text), width).splitlines()


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_but_styles_of_our_own_reaches_the_terminal(colour: bool) -> None:
    """Control characters and those that turn the text are shown as escapes, in words, tools and rows."""
    drawing = Drawing(colour=colour)
    drawn = [
        drawing.model_block(f"# {HOSTILE}\n\n- {HOSTILE}\n\n`{HOSTILE}` [{HOSTILE}](http://x/{HOSTILE})"),
        drawing.user_block(HOSTILE),
        drawing.note(HOSTILE),
        drawing.error(HOSTILE),
        drawing.rows(HOSTILE, [(HOSTILE, HOSTILE)], 80),
        drawing.rows(HOSTILE, [(HOSTILE, HOSTILE)], 20),
        drawing.tool(HOSTILE, {HOSTILE: HOSTILE}, 80, ok=False, note=HOSTILE),
    ]
    text = "".join(drawing.ansi(each, 200) for each in drawn)
    rest = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert [c for c in rest if not c.isprintable() and c != "\n"] == []
    assert "\\x1b]8;;" in rest
    assert "\\u202e" in rest
    # Without colour there is still bold and dim.
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", text)) == colour


def test_what_looks_like_html_is_shown() -> None:
    """The model may speak of tags."""
    assert plain(Drawing(colour=False), "Use <b>bold</b> and\n\n<div>\n\n& more") == [
        "Use <b>bold</b> and",
        "",
        "<div>",
        "",
        "& more",
    ]


@pytest.mark.parametrize("width", [1, 7, 30, 80])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    """Wide characters count two columns, whatever is drawn."""
    drawing = Drawing(colour=False)
    wide = "二つ目の項目です、とても長い文章 and words 👩‍🚀"
    drawn = [
        drawing.model_block(f"# {wide}\n\n- {wide}\n\n> {wide}"),
        drawing.user_block(wide),
        drawing.tool("memory_search", {"query": wide}, width, ok=True, note=wide),
    ]
    rows = "".join(drawing.ansi(each, width) for each in drawn).splitlines()
    assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", row)) for row in rows) <= max(width, 8)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"results": [1, 2]}, "2 results"),
        ({"results": [1]}, "1 result"),
        ("first\nsecond\nthird\n", "first  (+3 lines)"),
        ("", "nothing"),
        ({"path": "a.md", "bytes": 12}, "path: a.md, bytes: 12"),
        (None, "null"),
    ],
)
def test_a_result_is_told_in_brief(content: object, told: str) -> None:
    """How many rows, or its first words."""
    assert in_brief(content) == told


def test_a_line_is_cut_to_its_room() -> None:
    """Blanks and breaks are one blank; what is too much ends with an ellipsis."""
    assert one_line("a \n  b" + "c" * 20, 6) == "a bcc…"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_blocks_end_at_blank_lines_outside_code(size: int) -> None:
    """However the text is cut into pieces, the blocks are the same, and nothing is lost."""
    text = "One\ntwo.\r\n\r\n\n```python\na\n\nb\n```\n\n~~~~\n```\n\n~~~\n~~~~\n\nLast"
    blocks = Blocks()
    whole = [each for at in range(0, len(text), size) for each in blocks.feed(text[at : at + size])]
    assert whole == ["One\ntwo.", "```python\na\n\nb\n```", "~~~~\n```\n\n~~~\n~~~~"]
    assert (blocks.tail, blocks.finish(), blocks.finish(), blocks.tail) == ("Last", ["Last"], [], "")
