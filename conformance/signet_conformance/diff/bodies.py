"""Both bodies of a difference side by side, for a page: the lines in which they differ are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from html import escape

from signet_conformance.diff.difference import Comparison, Difference, Side
from signet_conformance.errors import printable
from signet_conformance.facts import Call, Recording
from signet_conformance.reports.html.exchange_data import MAX_BODY, body_data
from signet_conformance.reports.html.markup import Markup, element, joined
from signet_conformance.trace import Body

MAX_LINES = 400
"""Lines of a body that are compared with those of the other; nothing is marked in a longer one."""
_ROOM = 8_000_000


class Bodies:
    """The bodies that a page shows, as long as it has room for them; what is left out is counted."""

    def __init__(self, comparison: Comparison) -> None:
        self._calls = _calls(comparison.first), _calls(comparison.second)
        self._room = _ROOM
        self.left_out = 0

    def beside(self, difference: Difference) -> Markup:
        """Both bodies of a difference, folded; nothing where neither side has one."""
        answer = any(side.pointer.startswith("/response") for side in (difference.first, difference.second))
        sides = (difference.first, difference.second)
        bodies = [_body(calls, side, answer) for calls, side in zip(self._calls, sides, strict=True)]
        if bodies == [None, None]:
            return Markup()
        texts = [None if body is None else body_data(body) for body in bodies]
        self._room -= sum(len(text["body"]) for text in texts if text is not None)
        if self._room < 0:
            self.left_out += 1
            return Markup()
        lines = [[] if text is None else str(text["body"]).split("\n") for text in texts]
        drawn = []
        for name, side, text, own, marked in zip("AB", sides, texts, lines, _marked(*lines), strict=True):
            if side.exchange is None:
                continue
            if text is None:
                drawn.append(element("div", element("p", f"{name}: no body", class_="quiet")))
                continue
            note = f", {text['note']}" if "note" in text else ""
            label = f"{name} #{side.exchange}, body of the {'answer' if answer else 'request'}"
            body = element("pre", _lines(own, marked), tabindex=0, role="region", aria_label=label)
            drawn.append(element("div", element("p", f"{label}{note}", class_="quiet"), body))
        return element(
            "details",
            element("summary", "Both bodies" if len(drawn) > 1 else "The body"),
            element("div", *drawn, class_="beside"),
        )


def _calls(recording: Recording) -> Mapping[int, Call]:
    return {call.seq: call for call in recording.calls}


def _body(calls: Mapping[int, Call], side: Side, answer: bool) -> Body | None:
    call = None if side.exchange is None else calls.get(side.exchange)
    if call is None:
        return None
    message = call.exchange.response if answer else call.exchange.request
    return None if message is None else message.body


def _marked(first: Sequence[str], second: Sequence[str]) -> tuple[set[int], set[int]]:
    """The lines of each that the other has not; none where either is too long, or absent as a whole."""
    marked: tuple[set[int], set[int]] = set(), set()
    if not first or not second or max(len(first), len(second)) > MAX_LINES:
        return marked
    for what, begin, end, other_begin, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what != "equal":
            marked[0].update(range(begin, end))
            marked[1].update(range(other_begin, other_end))
    return marked


def _lines(lines: Sequence[str], marked: set[int]) -> Iterator[Markup]:
    for number, line in enumerate(lines):
        shown = Markup(escape(printable(line, MAX_BODY)))
        yield joined([element("mark", shown) if number in marked else shown, Markup("\n")])
