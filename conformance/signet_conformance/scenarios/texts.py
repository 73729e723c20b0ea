"""The words of generated sessions: what users and models say, save and look for."""

from __future__ import annotations

from hypothesis import strategies as st

from signet_conformance.scenarios.choices import DETAIL, Digits, number, weighted

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
"""Commands of a harness, which keeps them back or hands them on."""


def prompts() -> st.SearchStrategy[str]:
    """The text of a user's turn, never blank: mostly a line, sometimes of any script, now and then up to 150 kB."""
    return number(DETAIL).map(lambda detail: prompt_text(Digits(detail)))


def prompt_text(digits: Digits) -> str:
    """The text of one turn."""
    line, kind = digits.pick(PROMPTS), digits.pick(_PROMPT_KINDS)
    if kind == "strange":
        return f"{line} {digits.unicode_text()}"
    if kind == "slash":
        return digits.pick(_COMMANDS)
    return _repeated(line, digits.pick(_SIZES)) if kind == "long" else line


def _repeated(line: str, size: int) -> str:
    """Numbered lines of about `size` bytes."""
    each = f"{line} "
    count = max(size // (len(each.encode()) + 6), 1)
    return "".join(f"{number:05} {each}" for number in range(count)) if count > 1 else line
