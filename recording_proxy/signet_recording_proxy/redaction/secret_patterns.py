"""Finds secrets in running text by their shape.

Every pattern takes time in proportion to the text, whatever the text: repetitions are bounded, possessive, or anchored
to a mark that they cannot contain. Passwords have no shape of their own; they are known by their place in addresses,
statements of SQL, netrc and pgpass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from signet_recording_proxy.redaction.secret_names import is_placeholder, is_value, mixes
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans
from signet_recording_proxy.redaction.tables import Expression, read_table

# A port, or a placeholder for it in documents and templates.
_PORT = re.compile(
    r"(?:[0-9]{1,5}|[$%]?[a-z_]{0,16}port|%[ds]|\*|[^/?#]{0,256}[{}][^/?#]{0,256})(?:[/?#]|\Z)", re.IGNORECASE
)
_HOST = r"(?:[A-Za-z0-9_.-]{1,255}+|\[[0-9A-Fa-f:.]{2,45}\])"
_BEFORE_HOST = re.compile(rf"@(?={_HOST}(?::[0-9]{{1,5}})?(?:[/?#,;)\]}}`|]|\Z))")
_CERTAIN_HOST = re.compile(
    r"@(?=(?:localhost|(?:[A-Za-z0-9_-]+\.)+[A-Za-z]{2,}|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\[[0-9A-Fa-f:.]{2,45}\]|"
    r"[A-Za-z0-9_-]{1,64}:[0-9]{2,5})(?![A-Za-z0-9_.@-]))"
)
_NAME_ALONE = re.compile(r"[A-Za-z0-9_-]{1,64}/")


def password_length(rest: str, user: str) -> int:
    """The length of the password in the text after `scheme://user:`, up to the next blank; 0 without a password.

    It ends at the last `@` before the host. A password with `/`, `?` or `#` counts only where the address has no other
    reading: `host:8080/@scope` is a host with its port, and `user:password@host.org/@scope` has its host.
    """
    slash = next((at for at, character in enumerate(rest) if character in "/?#"), len(rest))
    authority = rest[:slash]
    if "@" in authority:
        return _in_authority(rest, authority)
    if "@" not in rest or _PORT.match(rest) or "." in user:
        return 0
    certain = _CERTAIN_HOST.search(rest)
    end = rest.rfind("@") if certain is None else certain.start()
    is_version = certain is None and rest[end + 1 : end + 2].isdigit()
    return end if mixes(rest[:end]) and not is_version and _BEFORE_HOST.match(rest, end) else 0


def _in_authority(rest: str, authority: str) -> int:
    before_host = _BEFORE_HOST.search(rest)
    end = authority.rfind("@") if before_host is None or before_host.start() >= len(authority) else before_host.start()
    tail = rest[end + 1 :]
    # `p@ss/w#rd@host`: an address with the host `ss` and an `@` in its fragment is unlikely.
    name = _NAME_ALONE.match(tail)
    if name is not None and tail[: name.end() - 1] != "localhost" and "#" in tail:
        last = rest.rfind("@")
        if last > end + 1 + tail.index("#") and _BEFORE_HOST.match(rest, last):
            return last
    return end


# A shape may follow a letter if that letter ends an escape, such as %3D or \n.
_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"


# How far a token that does not begin with its stem extends before and behind the stem.
_MOST_BEFORE, _MOST_BEHIND = 96, 300


def _has_no_word(candidate: str) -> bool:
    # In a key some run of characters mixes letters and digits; `sk-learn-experiments-2026`, a name, has no such run.
    runs = re.findall(r"[A-Za-z0-9]{10,}", candidate)
    return any(not run.isalpha() and not run.isdigit() for run in runs)


_ACCEPTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "spelled_out": lambda secret: not is_placeholder(secret),
    "value": is_value,
    "mixed": lambda value: is_value(value) and mixes(value),
    # The pattern takes a run without its two dots too, so that no run is looked at twice.
    "three_parts": lambda candidate: candidate.count(".") == 2,
    "no_word": _has_no_word,
    "long_value": lambda userinfo: len(userinfo) >= 16 and is_value(userinfo),
}


class TextPattern(Struct, frozen=True):
    """One shape. Text without any of `stems` (lower case) cannot hold it.

    The last group that took part in a match is the secret; without groups it is the whole match. With `in_url`, only
    as much of it as `password_length` says. `accepts` names the function that decides last. With `may_name`, a match is
    not a secret in a member that identifies the caller.
    """

    stems: tuple[str, ...]
    expression: Expression
    accepts: str = "spelled_out"
    may_name: bool = False
    in_url: bool = False
    stem_first: bool = True
    """Whether a match begins with a stem."""
    reach: tuple[int, int] | None = (640, 1100)
    """How far other matches extend before and behind their stem, up to the end of a word; None: to the end of the text.
    """

    def occurs(self, text: str) -> bool:
        """Whether text holds the shape, whatever precedes it: that may be a secret, which is replaced earlier."""
        return re.search(self.expression.removeprefix(_START), text) is not None

    def spans_at(self, text: str, stems: Sequence[int]) -> Iterator[Span]:
        """The places of the secrets whose stems begin at these places, in order."""
        expression, done = self.expression.compiled, 0
        for at in stems:
            if at < done:
                continue
            if self.stem_first:
                found = expression.match(text, at)
            else:
                found = expression.search(text, max(done, at - _MOST_BEFORE), at + _MOST_BEHIND)
                found = found if found is None else expression.match(text, found.start())
            if found is None:
                continue
            group, done = found.lastindex or 0, found.end()
            if _ACCEPTS[self.accepts](found[group]):
                yield found.span(group)

    def replace_at(self, stems: Sequence[int], text: str, token: Token) -> str:
        """As `replace`, given the places of the stems; for a pattern that begins with its stem."""
        return replace_spans(text, self.spans_at(text, stems), token)

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by its token."""
        return replace_spans(text, self._spans(text), token)

    def _spans(self, text: str) -> Iterator[Span]:
        for match in self.expression.compiled.finditer(text):
            start, end = match.span(match.lastindex or 0)
            end = start + password_length(match[2], match[1]) if self.in_url else end
            if _ACCEPTS[self.accepts](text[start:end]):
                yield start, end


class SecretKind(Struct, frozen=True):
    """A token whose shape its issuer chose: a run of fifteen characters or more that follows no letter or digit."""

    issuer: str
    stems: tuple[str, ...]
    expression: Expression
    stem_first: bool = True
    may_name: bool = False

    @property
    def pattern(self) -> TextPattern:
        """Its shape."""
        expression = Expression(f"{_START}(?:{self.expression})")
        return TextPattern(self.stems, expression, stem_first=self.stem_first, may_name=self.may_name)


class _Kinds(Struct):
    kinds: tuple[SecretKind, ...]


class _TextPatterns(Struct):
    issued: tuple[TextPattern, ...]
    blocks: tuple[TextPattern, ...]
    others: tuple[TextPattern, ...]


KINDS: Final = read_table("secret_kinds.json", _Kinds).kinds
"""From what issuers publish. Tokens that look like ordinary text are left out: `secret_names` finds them by name."""
_PATTERNS: Final = read_table("text_patterns.json", _TextPatterns, START=_START)

ISSUED: Final = (*(kind.pattern for kind in KINDS), *_PATTERNS.issued)
"""Tokens whose shape their issuer chose: runs of fifteen or more of `A-Za-z0-9_.~+/=@:!-`.

They are applied in this order, before all others, so that a secret has the same token in any context.
"""

BLOCKS: Final = _PATTERNS.blocks
"""Private keys in several lines."""

TEXT_PATTERNS: Final = (*BLOCKS, *_PATTERNS.others)
"""Patterns for a secret with its surroundings, in the order in which they are applied."""
