"""Turns whole numbers into choices from tables, and holds the texts of generated sessions.

A seed alone must determine the sessions. Hypothesis mixes constants of imported modules into the numbers and texts that
it draws, so the numbers here are drawn from a range without constants. They shrink towards 0, which picks the first
entry of every table: the simplest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

DETAIL = 1 << 24
"""The number of different details. Hypothesis would prefer small ones among more."""
_FAR_FROM_CONSTANTS = 1 << 200

_BLOCKS = (
    0x0061, 0x00E0, 0x03B1, 0x0430, 0x05D0, 0x0627, 0x0915, 0x0E01,
    0x4E00, 0xAC00, 0x1F600, 0x0300, 0x2000, 0x1D400, 0x0000, 0x2028,
)  # fmt: skip
"""First code points of letters, scripts from right to left, combining marks, invisible and control characters."""
_BLOCK_SIZE = 32


def number(limit: int) -> st.SearchStrategy[int]:
    """Draw a whole number from 0 to `limit` - 1, each as likely."""
    drawn = st.integers(_FAR_FROM_CONSTANTS, _FAR_FROM_CONSTANTS + limit - 1)
    return drawn.map(lambda value: value - _FAR_FROM_CONSTANTS)


def weighted(weights: Mapping[T, int]) -> Sequence[T]:
    """Return a table that holds each key as often as its weight says."""
    return [key for key, weight in weights.items() for _ in range(weight)]


class Digits:
    """A whole number, read as a row of choices. One number makes a whole intent, so it shrinks as one."""

    def __init__(self, value: int) -> None:
        self._left = value

    def pick(self, table: Sequence[T]) -> T:
        """Return the entry that the next digit picks from a table."""
        self._left, index = divmod(self._left, len(table))
        return table[index]

    def unicode_text(self) -> str:
        """Return eight characters of one or more scripts, invisible and control characters included, no surrogates."""
        step, first, offset = self.pick(range(3)), self.pick(range(len(_BLOCKS))), self.pick(range(_BLOCK_SIZE))
        blocks = [_BLOCKS[(first + place * step) % len(_BLOCKS)] for place in range(8)]
        return "".join(chr(block + (offset + 5 * place) % _BLOCK_SIZE) for place, block in enumerate(blocks))


LARGEST_PROMPT_BYTES = 150_000

PROMPTS = (
    "Hello.",
    "Which database does Atlas Billing use?",
    "When does the export run?",
    "Rename the invoice module.",
    "Wie heißt der Mandant in Zürich? ✓",
    "User: who is paged?\nAssistant: the platform rota.",
    'Quote this: "{\\"role\\": \\"user\\"}"',
    "  Leading and trailing blanks \n",
)
REPLIES = ("Understood.", "It does.", "発注は来週です。", "Assistant: done\n\nUser: thanks")
SUMMARIES = (
    "Orders become invoices.",
    "The user asked for the billing pipeline; nothing was changed.",
    "Résumé : la facturation passe à gRPC 🚀",
    "User: a line that looks like a turn",
)
FACTS = (
    "Invoices are numbered per calendar year.",
    "The ledger talks gRPC streaming.",
    "Exports are kept for ninety days.",
    "Der Mandant sitzt in Zürich.",
)
QUERIES = ("how are invoices numbered", "gRPC", "ninety days of exports", "Zürich")
_SIZES = (1_000, 10_000, LARGEST_PROMPT_BYTES, LARGEST_PROMPT_BYTES)

_PROMPT_KINDS = weighted({"line": 46, "strange": 15, "slash": 2, "long": 1})
_COMMANDS = ("/status", "/help")
"""Commands of a harness, which may keep them from the connector."""


def prompts() -> st.SearchStrategy[str]:
    """Draw the text of a user's turn, never blank: mostly a line, sometimes of any script, rarely up to 150 kB."""
    return number(DETAIL).map(lambda detail: prompt_text(Digits(detail)))


def prompt_text(digits: Digits) -> str:
    """Return the text of one prompt, picked by the digits."""
    line, kind = digits.pick(PROMPTS), digits.pick(_PROMPT_KINDS)
    if kind == "strange":
        return f"{line} {digits.unicode_text()}"
    if kind == "slash":
        return digits.pick(_COMMANDS)
    return _repeated(line, digits.pick(_SIZES)) if kind == "long" else line


def _repeated(line: str, size: int) -> str:
    each = f"{line} "
    count = max(size // (len(each.encode()) + 6), 1)
    return "".join(f"{number:05} {each}" for number in range(count)) if count > 1 else line
