"""Values that differ between any two runs: ids, times, ports, paths, durations, and the links between them.

A class of volatile values is a name and a pattern. Each value it matches is replaced by the name of its class; those of
a linked class are kept beside the text, so that a changed link between two places still shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial

from msgspec import Struct

from signet_conformance.errors import UsageError, printable
from signet_conformance.facts import pattern_agent
from signet_conformance.trace.glance import normalised_key

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = "(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_OF_DAY = r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"

PATTERNS: Mapping[str, str] = {
    "transcript": r"(?<![\w/])(?:~|[A-Za-z]:)?[/\\][^\s\"'<>|]{1,400}?\.jsonl?\b",
    "tmp": r"(?:/private)?(?:/tmp|/var/folders/\w+/\w+/T)/[^\s\"'/\\]{1,200}(?:/pytest-\d+)?",
    "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "id": r"\b[a-z]{2,8}_(?=[A-Za-z]{0,40}\d)[0-9A-Za-z]{10,64}\b",
    "time": rf"\b\d{{4}}-\d\d-\d\d[T ]{_OF_DAY} ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?!\w)",
    "localtime": rf"\b\d{{4}}-\d\d-\d\d[T ]{_OF_DAY}",
    "date": rf"\b{_DAY}(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH} \d{{4}}|\d{{4}}-\d\d-\d\d)\b"
    rf"(?:(?:,? at|,)? {_OF_DAY}(?: ?[AP]M)?(?: ?\([^()\n]{{1,40}}\)| (?:UTC|GMT))?)?",
    "clock": r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?(?: ?[AP]M)?| ?[AP]M)\b(?: ?\([^()\n]{1,40}\))?",
    "epoch": r"(?<![\w.])1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\w])",
    "hash": r"\b(?:sha256[:-])?[0-9a-f]{16,128}\b",
    "port": r"(?:(?<=127\.0\.0\.1:)|(?<=localhost:)|(?<=\[::1\]:))\d{2,5}\b",
    "duration": r"\b\d+(?:\.\d+)? ?ms\b",
}
"""The classes found inside texts, first match first."""

LINKED = frozenset({"uuid", "id", "hash", "tmp"})
"""Classes whose values must be renamed consistently. Times and ports are read off a clock or the system each time."""

HEADERS = frozenset(
    {"host", "content-length", "date", "connection", "keep-alive", "transfer-encoding", "traceparent", "x-request-id"}
)
"""The class `header`: headers about the connection and the moment, which are left out."""

_DURATION_MEMBER = re.compile(r"(?:[a-z](?:Ms|Seconds)|_ms|_seconds)$|^(?:ms|uptime|latency|elapsed|duration)$")
_GAUGES = frozenset({"pid", "port", "rss", "heapUsed", "heapTotal", "sockets", "inotify", "pipes", "fds"})
MEMBERS = ("duration", "gauge", "epoch")
"""The classes of numbers, recognised by the member's name or by their size."""

NAMES = (*PATTERNS, "gauge", "header")
_EPOCHS = ((1.4e9, 2.0e9), (1.4e12, 2.0e12), (1.4e15, 2.0e15), (1.4e18, 2.0e18))
_CACHED_LENGTH = 300
_CACHED_ENTRIES = 20_000

Link = tuple[str, str]
"""Class and value of something that must be renamed consistently."""


class Plain(Struct, frozen=True):
    """A text without its volatile values: `skeleton` has the class in place of each, `links` those that are linked."""

    skeleton: str
    links: tuple[Link, ...]


class VolatileClasses:
    """The classes in force: the built-in ones without those to keep, and the user's own."""

    def __init__(self, keep: Iterable[str] = (), own: Mapping[str, str] | None = None) -> None:
        """Raise UsageError for a class that does not exist or a pattern that does not fit in."""
        self._kept = frozenset(_demand_class(name) for name in keep)
        own = own or {}
        self._linked = LINKED | frozenset(own)
        # The user's classes come first: users know their values better.
        patterns = {**own, **{name: PATTERNS[name] for name in PATTERNS if name not in {*self._kept, *own}}}
        self._groups = list(patterns)
        groups = [f"(?P<c{index}>{pattern})" for index, pattern in enumerate(patterns.values())]
        for count, name in enumerate(own, 1):
            _demand_pattern("|".join([*groups[:count], *groups[len(own) :]]), name)
        self._pattern = re.compile("|".join(groups)) if groups else None
        self._headers = frozenset() if "header" in self._kept else HEADERS
        self._cache: dict[str, Plain] = {}

    def plain(self, text: str) -> Plain:
        """`text` without its volatile values."""
        if len(text) > _CACHED_LENGTH:
            return self._plain(text)
        shown = self._cache.get(text)
        if shown is None:
            shown = self._plain(text)
            if len(self._cache) < _CACHED_ENTRIES:
                self._cache[text] = shown
        return shown

    def _plain(self, text: str) -> Plain:
        if self._pattern is None:
            return Plain(text, ())
        links: list[Link] = []
        skeleton = self._pattern.sub(partial(self._replace, links), text)
        return Plain(skeleton, tuple(links))

    def _replace(self, links: list[Link], match: re.Match[str]) -> str:
        if not match[0] or match.lastgroup is None:
            return match[0]
        # A user's pattern may hold groups of its own, so the last group need not be the class.
        name = next(name for index, name in enumerate(self._groups) if match[f"c{index}"] is not None)
        if name in self._linked:
            links.append((name, match[0]))
        return f"\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}{name}\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"

    def header(self, name: str) -> bool:
        """Whether a header of this lower-case name is left out."""
        return name in self._headers

    def number(self, member: str, first: float, second: float) -> bool:
        """Whether two numbers under a member of this name are volatile, and so count as equal."""
        if "duration" not in self._kept and _DURATION_MEMBER.search(member) and not member.startswith("timeout"):
            return True
        if "gauge" not in self._kept and member in _GAUGES:
            return True
        return "epoch" not in self._kept and any(low <= first < high and low <= second < high for low, high in _EPOCHS)


def _demand_class(name: str) -> str:
    if name not in NAMES:
        near = get_close_matches(name, NAMES, 1)
        raise UsageError(
            f"there is no class of volatile values {printable(name, 40)!r}",
            where="--keep",
            remedy=f"--keep {near[0]}" if near else f"one of {', '.join(NAMES)}",
        )
    return name


def _demand_pattern(joined: str, last: str) -> None:
    try:
        re.compile(joined)
    except re.error as failure:
        raise UsageError(
            f"the pattern of {printable(last, 40)!r} does not compile among the others: {printable(failure.msg, 160)}",
            where="--volatile",
            remedy="write flags as (?i:…), and groups without names, such as --volatile 'ticket=TICKET-[0-9]+'",
        ) from None


def own_classes(options: Sequence[str]) -> dict[str, str]:
    """The classes that `--volatile NAME=REGEX` options define; raise UsageError where an option is not such a pair."""
    own: dict[str, str] = {}
    for option in options:
        name, separator, pattern = option.partition("=")
        if not separator or not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name) or not pattern:
            raise UsageError(
                f"{printable(option, 60)!r} is not NAME=REGEX",
                where="--volatile",
                remedy="write a name in lower case and a pattern, such as --volatile 'ticket=TICKET-[0-9]+'",
            )
        own[name] = pattern
    return own


_NOISE = ("test-", "tmp-", "spec-", "fixture-", "synthetic-")
_LONGEST_LINKED = 300
"""A longer text counts as prose, whose quoted values are compared by class only."""

PlainOf = Callable[[str], Plain]


class KeyNames:
    """The session keys of one side: each becomes its pair's number, with what the daemon reads out of the key."""

    def __init__(self, numbers: Mapping[str, int], volatile: VolatileClasses) -> None:
        self._numbers = numbers
        self._volatile = volatile

    def plain(self, text: str) -> Plain:
        """`text` without volatile values; a text that is a session's key is that session's number."""
        number = self._numbers.get(normalised_key(text) or "") if len(text) <= _LONGEST_LINKED else None
        if number is None:
            return self._volatile.plain(text)
        prefix = "session:" if text.strip().startswith("session:") else ""
        agent = pattern_agent(text.strip()) or ""
        noise = next((start for start in _NOISE if text.strip().startswith(start)), "")
        return Plain(f"\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}session {number} {prefix}{agent}{noise}", ())


class Links:
    """Which value of the first recording corresponds to which of the second, within one session."""

    def __init__(self, first: PlainOf, second: PlainOf) -> None:
        self._first, self._second = first, second
        self._forward: dict[tuple[str, str], str] = {}
        self._backward: dict[tuple[str, str], str] = {}

    def same(self, first: str, second: str, *, strict: bool) -> bool:
        """Whether two texts mean the same. If `strict`, linked values must be counterparts, and become so."""
        if first == second and (not strict or len(first) > _LONGEST_LINKED):
            return True
        plain, other = self._first(first), self._second(second)
        if plain.skeleton != other.skeleton:
            # Keys of sessions that match by order: one text may be a key on one side only.
            return first == second
        if not strict or len(first) > _LONGEST_LINKED:
            return True
        bound = [
            self._bind(name, value, counterpart)
            for (name, value), (_, counterpart) in zip(plain.links, other.links, strict=True)
        ]
        return all(bound)

    def _bind(self, name: str, first: str, second: str) -> bool:
        there = self._forward.get((name, first))
        back = self._backward.get((name, second))
        if there is None and back is None:
            self._forward[name, first] = second
            self._backward[name, second] = first
            return True
        return there == second and back == first
