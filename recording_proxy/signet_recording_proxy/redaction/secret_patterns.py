"""Shapes of secrets in running text.

Every pattern takes time in proportion to the text, whatever the text: repetitions are bounded, possessive, or anchored
to a mark that they cannot contain. Passwords have no shape of their own; they are known by their place in addresses,
statements of SQL, netrc and pgpass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from signet_recording_proxy.redaction.secret_kinds import KEY_BLOCKS, KINDS
from signet_recording_proxy.redaction.secret_names import is_placeholder, is_value, mixes
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans

LONGEST: Final = 512
# A port, or what stands for one in documents and templates.
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
    # `p@ss/w#rd@host`: nobody names a host `ss` and goes on to a fragment with an `@`.
    name = _NAME_ALONE.match(tail)
    if name is not None and tail[: name.end() - 1] != "localhost" and "#" in tail:
        last = rest.rfind("@")
        if last > end + 1 + tail.index("#") and _BEFORE_HOST.match(rest, last):
            return last
    return end


_BLANKS = r"\s{1,64}+"
_WORD = r"\S{1,255}+"
# A sentence about machines names none: `the machine has login and password fields`.
_MACHINE = r"(?=\S{0,253}[.:0-9-]|localhost\s)" + _WORD
_IN_QUOTES = r"(?:\\{0,4}'((?:[^'\\\n]|''|\\[^'\n])++)\\{0,4}'|\\{0,4}\"((?:[^\"\\\n]|\\[^\"\n])++)\\{0,4}\")"
_PASSWORD = rf"password{_BLANKS}(\S{{3,256}}+)"
_ANY_OR_NAME = r"(?:\*|[A-Za-z_][A-Za-z0-9_.-]{0,63}+)"
_OWNERS = (
    *("admin", "auth", "bot", "cert", "current", "database", "db", "ftp", "github", "gitlab", "http", "https", "key"),
    *("keystore", "ldap", "login", "mail", "mongo", "mysql", "new", "old", "pg", "postgres", "proxy", "redis"),
    *("registry", "root", "service", "smtp", "ssh", "store", "truststore", "user", "vault"),
)
"""Whose password an option may give: `--no-password` and `--ask-password` give none."""


def _is_mixed(value: str) -> bool:
    return is_value(value) and mixes(value)


_BEHIND_A_STEM: Final[tuple[tuple[tuple[str, ...], str, Callable[[str], bool]], ...]] = (
    (
        ("identified ",),
        rf"\b(?i:identified (?:with{_BLANKS}{_WORD}{_BLANKS})?(?:by|as){_BLANKS}(?:password{_BLANKS})?){_IN_QUOTES}",
        is_value,
    ),
    # In small letters a sentence may say it of a field: password 'must not be empty'.
    (("password '", "password('"), r"\bPASSWORD(?: |\()" + _IN_QUOTES, is_value),
    (
        ("machine",),
        (
            rf"\bmachine{_BLANKS}{_MACHINE}{_BLANKS}(?:(?:(?:login|account){_BLANKS}{_WORD}{_BLANKS}){{1,2}}+{_PASSWORD}"
            rf"|{_PASSWORD}(?={_BLANKS}login\s))"
        ),
        is_value,
    ),
    (
        ("default login",),
        rf"\bdefault login{_BLANKS}{_WORD}{_BLANKS}{_PASSWORD}",
        _is_mixed,
    ),
    (
        ("recovery key",),
        r"\b(?i:recovery key)[\"'*]{0,3}\s{0,4}[:=]?[\"'*]{0,3}\s{1,4}[`\"']?([0-9]{6}(?:-[0-9]{6}){7})(?![0-9-])",
        is_value,
    ),
    (
        ("mnemonic", "seed phrase", "recovery phrase", "seed_phrase"),
        (
            r"\b(?i:mnemonic|(?:seed|recovery)[ _]phrase)\\{0,4}[\"']?\s{0,4}(?:(?:is|was)\s{0,2}:?|[:=])"
            r"\s{0,4}\\{0,4}[\"']?"
            r"((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?![A-Za-z])"
        ),
        is_value,
    ),
)
"""Beginnings in lower case, one of which what it matches begins with; expression; what has the last word on it."""
_AROUND_A_STEM: Final[tuple[tuple[tuple[str, ...], str, Callable[[str], bool]], ...]] = (
    (
        ("password '",),
        r"\b(?i:(?:create|alter)\s{1,8}(?:role|user)\s[^;\n']{0,200}?\spassword )" + _IN_QUOTES,
        is_value,
    ),
    (
        tuple(f"-{kind} " for kind in ("password", "passphrase", "token", "secret", "key")),
        (
            rf"(?<![A-Za-z0-9-])--(?:(?:{'|'.join(_OWNERS)})-){{1,3}}"
            r"(?:api-key|password|passphrase|token|secret) {1,4}"
            r"(?:\\{0,4}[\"'])?([^\s\"'<>;&|$\\`()-][^\s\"'<>;&|\\`()]{7,255}+)"
        ),
        _is_mixed,
    ),
    # The ports that databases listen at: `main.ts:1234:15:error:TS2304` is a place in a file.
    (
        (":*:", ":5432:", ":5433:", ":5434:"),
        (
            r"(?:(?<=[\s\"'/])|(?<=\\n)|(?<![\s\S]))(?:\*|[A-Za-z0-9._-]{1,255}+):(?:\*|543[234]):"
            rf"{_ANY_OR_NAME}:{_ANY_OR_NAME}:([^\s\"'\\:]{{3,256}}+)(?![^\s\"'\\])"
        ),
        is_value,
    ),
)
"""Parts in lower case, one of which stands in what it matches; the others as above."""


# A shape may follow a letter when that letter ends an escape, such as %3D or \n.
_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"


# In tokens that do not begin with what they are known by.
_MOST_BEFORE, _MOST_BEHIND = 96, 300


def _is_spelled_out(secret: str) -> bool:
    return not is_placeholder(secret)


class TextPattern(Struct, frozen=True):
    """One shape. Text without any of `stems` (lower case) cannot hold it.

    The last group that took part in a match is the secret; without groups it is the whole match. `length` returns how
    many of its characters are secret, 0 for no secret. `accepts` decides last. With `may_name`, a match is not a secret
    in a member that identifies the caller.
    """

    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = _is_spelled_out
    may_name: bool = False
    length: Callable[[re.Match[str]], int] | None = None
    stem_first: bool = True
    """Whether what matches begins with a stem."""
    reach: tuple[int, int] | None = (640, 1100)
    """How far others extend before and behind their stem, up to the end of a word; None: to the end of the text."""

    def occurs(self, text: str) -> bool:
        """Whether text holds the shape, whatever stands before it: what does may be taken out before."""
        return re.search(self.pattern.pattern.removeprefix(_START), text) is not None

    def spans_at(self, text: str, stems: Sequence[int]) -> Iterator[Span]:
        """Where the secrets are whose stems begin at these places, in order."""
        match, search, done = self.pattern.match, self.pattern.search, 0
        for at in stems:
            if at < done:
                continue
            if self.stem_first:
                found = match(text, at)
            else:
                found = search(text, max(done, at - _MOST_BEFORE), at + _MOST_BEHIND)
                found = found if found is None else match(text, found.start())
            if found is None:
                continue
            group, done = found.lastindex or 0, found.end()
            if self.accepts(found[group]):
                yield found.span(group)

    def replace_at(self, stems: Sequence[int], text: str, token: Token) -> str:
        """As `replace`, where the stems are known to stand; for a pattern that begins with one."""
        return replace_spans(text, self.spans_at(text, stems), token)

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        return replace_spans(text, self._spans(text), token)

    def _spans(self, text: str) -> Iterator[Span]:
        for match in self.pattern.finditer(text):
            start, end = match.span(match.lastindex or 0)
            end = end if self.length is None else start + self.length(match)
            if self.accepts(text[start:end]):
                yield start, end


def _value(shortest: int) -> str:
    """A shell word: in double quotes, in single quotes, or bare; no variable, no option, nothing redacted.

    Quotes that nothing escapes hold what is escaped.
    """
    quoted = r"(?<!\\)\"((?:[^\"\\<$]|\\[^\n])(?:[^\"\\]|\\[^\n])*+)"
    quoted += "|" + quoted.replace('"', "'")
    bare = rf"[^\s\"'<>;&|$\\`()-][^\s\"'<>;&|\\`()]{{{shortest - 1},}}+"
    return rf"(?:{quoted}|\\{{0,4}}\"([^\"\\<$][^\"\\]*+)|\\{{0,4}}'([^'\\<$][^'\\]*+)|({bare}))"


def _is_three_parts(candidate: str) -> bool:
    # The pattern takes a run without its two dots too, so that no run is looked at twice.
    return candidate.count(".") == 2


def _has_no_word(candidate: str) -> bool:
    # In a key some run of characters mixes letters and digits; `sk-learn-experiments-2026`, a name, has no such run.
    runs = re.findall(r"[A-Za-z0-9]{10,}", candidate)
    return any(not run.isalpha() and not run.isdigit() for run in runs)


def _looks_secret(userinfo: str) -> bool:
    return len(userinfo) >= 16 and is_value(userinfo)


ISSUED: tuple[TextPattern, ...] = (
    *(
        TextPattern(
            kind.stems,
            re.compile(_START + f"(?:{kind.expression})"),
            may_name=kind.like_name,
            stem_first=not kind.stem_inside,
        )
        for kind in KINDS
    ),
    TextPattern(("sig_sk_",), re.compile(r"sig_sk_[A-Za-z0-9_-]{8,}+")),
    TextPattern(
        ("eyj",),
        re.compile(r"eyJ[A-Za-z0-9_-]{7,}+(?:\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+)?"),
        _is_three_parts,
    ),
    TextPattern(("sk-",), re.compile(_START + r"sk-[A-Za-z0-9_-]{16,}+"), _has_no_word, may_name=True),
    TextPattern(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+"),
    ),
    TextPattern(("xox",), re.compile(r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9_-]{8,}+")),
    TextPattern(("akia", "asia"), re.compile(_START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    TextPattern(("aiza",), re.compile(r"AIza[A-Za-z0-9_-]{30,}+")),
)
"""Tokens with a shape of their issuer: runs of fifteen or more of `A-Za-z0-9_.~+/=@:-`.

In the order in which they are applied, before all others: so they keep one token in any context.
"""

BLOCKS: tuple[TextPattern, ...] = tuple(
    TextPattern(stems, re.compile(shape), stem_first=False, reach=None) for _, stems, shape in KEY_BLOCKS
)

TEXT_PATTERNS: tuple[TextPattern, ...] = (
    *BLOCKS,
    TextPattern(
        ("@",),
        re.compile(rf"://([^\s/?#@\"'<>:\\]{{0,256}}+):((?:[^\s\"'<>\\:]|:(?!//)){{1,{LONGEST}}}+)"),
        is_value,
        length=lambda match: password_length(match[2], match[1]),
        stem_first=False,
    ),
    TextPattern(("@",), re.compile(r"://([^\s/?#@\"'<>:,\\]{1,256}+):?@"), _looks_secret, stem_first=False),
    TextPattern(
        ("authorization", "x-api-key"),
        re.compile(
            r"(?:[Aa]uthorization|AUTHORIZATION|[Xx]-[Aa][Pp][Ii]-[Kk][Ee][Yy])\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
            r"(?:[A-Za-z]{3,10}\s{1,4})?([^\s\"'\\,;<>]{16,}+)"
        ),
    ),
    TextPattern(
        ("bearer",),
        re.compile(r"(?:[Bb]earer|BEARER)(?:[ \t]{1,4}|%20|\+)([A-Za-z0-9._~+/=-]{16,}+)"),
    ),
    TextPattern(
        ("key=", "token=", "secret=", "password=", "passwd="),
        re.compile(
            r"(?:TOKEN|SECRET|PASSWORD|PASSWD|(?:(?<=API)|(?<=API_)|(?<=ACCESS_)|(?<=PRIVATE_)|(?<=SECRET_))KEY)="
            + _value(4)
        ),
        is_value,
    ),
    *(TextPattern(stems, re.compile(shape), accepts) for stems, shape, accepts in _BEHIND_A_STEM),
    *(TextPattern(stems, re.compile(shape), accepts, stem_first=False) for stems, shape, accepts in _AROUND_A_STEM),
    TextPattern(
        ("--api", "--token", "--access", "--auth", "--pass", "--secret", "--client"),
        re.compile(
            r"--(?:api-?key|token|access-token|auth-token|password|passphrase|secret|client-secret)(?:=|[ \t]{1,4})"
            + _value(8)
        ),
        is_value,
    ),
)
"""What stands around a secret, in the order in which they are applied."""
