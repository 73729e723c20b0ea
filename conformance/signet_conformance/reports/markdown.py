"""The report for a step summary or a comment: Markdown without HTML, in which nothing of a trace is markup.

All text of a trace is in code spans and code blocks. The document stays within the size of a step summary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from signet_conformance import __version__
from signet_conformance.errors import printable
from signet_conformance.facts.steps import skipped_words
from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.reports.cause_text import MAX_PROBLEMS, cause_rows, known_words, replay_words
from signet_conformance.reports.causes import Cause, CauseReport
from signet_conformance.reports.command_lines import explain_command, page_address, shell_command
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.evidence import Evidence, known_requirement
from signet_conformance.reports.remarks import played, remarks

HEADING = "## Signet conformance"
_APART = "Apart from the connector's verdicts and the exit status."
MAX_BYTES = 900_000
"""A step summary takes 1 MiB."""

_TAME = re.compile(r"(?!.*(?:www\.|:\S))[A-Za-z0-9 ,.;:'\"()/%…-]*")
"""Text that Markdown leaves as it is: no markup, link, mention, reference or emoji code."""


class MarkdownReport(CauseReport):
    """Gathers the breaches by cause, and writes the document at the end."""

    def close(self, ending: RunEnding) -> None:
        """Write the document."""
        self._causes.end(ending.conclusion)
        room = MAX_BYTES
        blocks = list(self._blocks(ending))
        for number, block in enumerate(blocks):
            room -= len(block.encode(errors="backslashreplace")) + 1
            if room < 0:
                self._stream.write(f"{len(blocks) - number} more blocks do not fit here; the JSON report has them.\n")
                break
            self._stream.write(f"{block}\n")

    def _blocks(self, ending: RunEnding) -> Iterator[str]:
        run, verdicts = ending.conclusion, ending.verdicts
        yield f"{HEADING}\n"
        yield f"{inline(ending.closing_line)}\n"
        yield f"{_counts(verdicts)}\n"
        for host in played(each.trace for each in run.judged):
            yield f"Here {inline(host.words)}.\n"
        if words := skipped_words(run.skipped):
            yield f"Here {inline(words)}.\n"
        for cause in self._causes.connector():
            yield _block(cause, ending.options)
        if harness_notes := remarks(each.trace for each in run.judged):
            yield "### Noticed in the harness\n"
            yield "\n".join(f"- {inline(printable(note, 600))}" for note in harness_notes) + "\n"
        undecided = [name for name, verdict in verdicts.items() if verdict is Verdict.INCONCLUSIVE]
        if undecided:
            yield "### Not decided\n"
            yield "\n".join(map(_undecided, undecided)) + "\n"
        beside = {"On the daemon's side": self._causes.daemon(), "What reached the model": self._causes.harness()}
        for heading, causes in beside.items():
            if causes:
                yield f"### {heading}\n\n{_APART}\n"
                yield from (_block(cause, ending.options) for cause in causes)
        if run.coverage is not None:
            yield f"Coverage: {run.coverage.words}\n"
        if run.newer is not None and run.newer.words:
            yield f"### {inline(run.newer.words)}\n\n{_APART}\n"
            for name, each in run.newer.breaches.items():
                yield f"- {each.verdict} {inline(name)}: {inline(printable(each.message, 300))}"
            yield ""
        if run.reach is not None and run.reach.words:
            yield f"Not reachable by the model, for information: {inline(run.reach.words)}\n"
        if ending.notes:
            yield f"{fenced([printable(note, 600) for note in ending.notes])}\n"
        identity = f"; {inline(words)}" if (words := run.identity.words()) else ""
        yield f"Judged by contract {run.contract}, kit {__version__}{identity}.\n"


def _counts(verdicts: Mapping[str, Verdict]) -> str:
    tally = Counter(verdicts.values())
    heads = " | ".join(verdict.value for verdict in FOLDING_ORDER)
    cells = " | ".join(str(tally[verdict]) for verdict in FOLDING_ORDER)
    return f"| {heads} |\n|{' ---: |' * len(FOLDING_ORDER)}\n| {cells} |"


def page_link(name: str) -> str:
    """A link to a requirement's page if it has an address, else the command that shows it."""
    address = page_address(name)
    return f"[{inline(name)}]({address})" if address is not None else code(explain_command(name))


def _undecided(name: str) -> str:
    return f"- {inline(name)}: {page_link(name)}" if known_requirement(name) is not None else f"- {inline(name)}"


def _block(cause: Cause, options: Sequence[str]) -> str:
    level = f" ({cause.level})" if cause.level else ""
    lines = [f"### {cause.verdict.value}{known_words(cause)} {inline(cause.requirement)}{level}", ""]
    if cause.sentence:
        lines += [inline(cause.sentence), ""]
    for breach in cause.breaches[:MAX_PROBLEMS]:
        lines += _example(breach, around=breach is cause.first)
    for label, content in cause_rows(cause, cause.also):
        lines.append(f"- **{label}**: {inline(content) if isinstance(content, str) else _other(content)}")
    if known_requirement(cause.requirement) is not None:
        lines.append(f"- **page**: {page_link(cause.requirement)}")
    if cause.first.file and (words := replay_words(cause, options)):
        lines.append(f"- **replay**: {code(shell_command(words))}")
    return "\n".join(lines) + "\n"


def _other(other: Evidence) -> str:
    head = f"{other.verdict.value} {inline(other.requirement)}{known_words(other)}"
    return f"{head}: {inline(other.what)} ({page_link(other.requirement)})"


_FIRST = ("what", "where", "in")
"""The facts of an example that are laid out in a way of their own."""


def _example(breach: Evidence, *, around: bool) -> Iterator[str]:
    yield f"- **what**: {inline(breach.what)}"
    places = [code(text) for text in (breach.where, breach.place) if text]
    if places:
        yield f"  - **where**: {', in '.join(places)}"
    yield from (f"  - **{label}**: {code(text)}" for label, text in breach.facts if label not in _FIRST)
    if breach.around and around:
        yield ""
        yield fenced([f"{'>' if breaching else ' '} {line}" for breaching, line in breach.around], "    ")
    if breach.repeats:
        yield f"  - **again**: {code(breach.repeated)}"
    yield ""


def inline(text: str) -> str:
    """`text` within a line: as it is if Markdown would not change it, else as a code span."""
    return text if _TAME.fullmatch(text) else code(text)


def code(text: str) -> str:
    """`text` as a code span, which holds nothing but text; inside a table cell too."""
    fence = "`" * (_longest_run(text) + 1)
    margin = " " if not text.strip() or text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{margin}{text}{margin}{fence}"


def fenced(lines: list[str], indent: str = "") -> str:
    """Lines as a code block; no line may hold a line break."""
    fence = "`" * max(3, max(map(_longest_run, lines), default=0) + 1)
    return "\n".join(f"{indent}{line}" for line in (f"{fence}text", *lines, fence))


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
