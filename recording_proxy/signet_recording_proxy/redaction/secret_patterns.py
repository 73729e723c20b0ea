"""Shapes of secrets in running text.

Every pattern takes time in proportion to the text, whatever the text: repetitions are bounded, possessive, or anchored
to a mark that they cannot contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from signet_recording_proxy.redaction.passwords import LONGEST, WRITTEN_OUT, password_length
from signet_recording_proxy.redaction.secret_kinds import KEY_BLOCKS, KINDS, LIKE_NAMES
from signet_recording_proxy.redaction.secret_names import is_value

# A shape may follow a letter when that letter ends an escape, such as %3D or \n.
_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"


class TextPattern(Struct, frozen=True):
    """One shape. Text without any of `stems` (lower case) cannot hold it.

    The last group that took part in a match is the secret; without groups it is the whole match. `length` returns how
    many of its characters are secret, 0 for no secret. `accepts` decides last. With `may_name`, a match is not a secret
    in a member that identifies the caller.
    """

    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    may_name: bool = False
    length: Callable[[re.Match[str]], int] | None = None

    def occurs(self, text: str) -> bool:
        """Whether text holds the shape, whatever stands before it: what does may be taken out before."""
        return re.search(self.pattern.pattern.removeprefix(_START), text) is not None

    def replace(self, text: str, token: Callable[[str], str]) -> str:
        """`text` with each secret replaced by what `token` gives for it."""

        def replaced(match: re.Match[str]) -> str:
            whole, group = match[0], match.lastindex or 0
            secret = match[group] if self.length is None else match[group][: self.length(match)]
            if not self.accepts(secret):
                return whole
            start = match.start(group) - match.start()
            return whole[:start] + token(secret) + whole[start + len(secret) :]

        return self.pattern.sub(replaced, text)


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
        TextPattern(stems, re.compile(_START + f"(?:{shape})"), may_name=issuer in LIKE_NAMES)
        for issuer, stems, shape in KINDS
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
    TextPattern(("xox",), re.compile(r"xox[a-z]-[A-Za-z0-9-]{10,}+")),
    TextPattern(("akia", "asia"), re.compile(_START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    TextPattern(("aiza",), re.compile(r"AIza[A-Za-z0-9_-]{30,}+")),
)
"""Tokens with a shape of their issuer: runs of fifteen or more of `A-Za-z0-9_.~+/=@:-`.

In the order in which they are applied, before all others: so they keep one token in any context.
"""

TEXT_PATTERNS: tuple[TextPattern, ...] = (
    *(TextPattern(stems, re.compile(shape)) for _, stems, shape in KEY_BLOCKS),
    TextPattern(
        ("@",),
        re.compile(rf"://([^\s/?#@\"'<>:\\]{{0,256}}+):((?:[^\s\"'<>\\:]|:(?!//)){{1,{LONGEST}}}+)"),
        is_value,
        length=lambda match: password_length(match[2], match[1]),
    ),
    TextPattern(("@",), re.compile(r"://([^\s/?#@\"'<>:\\]{1,256}+)@"), _looks_secret),
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
        re.compile(r"(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY)=" + _value(4)),
        is_value,
    ),
    *(TextPattern(stems, re.compile(shape), accepts) for stems, shape, accepts in WRITTEN_OUT),
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
