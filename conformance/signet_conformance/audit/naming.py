"""What may stand in the results of an audit: names of programs and releases, and hashes of everything else.

Recordings hold folders, texts and sometimes secrets, in any member that a program fills. A text that does not look like
a name is replaced by a hash of it, so that equals stay equal.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from hashlib import blake2b

from signet_conformance.contract import document, requirements

_NAME = re.compile(r"(?:@[a-z0-9][a-z0-9._-]{0,39}/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", re.ASCII)
_SECRET = re.compile(
    r"sig_sk_|eyJ[A-Za-z0-9_-]{7}|(?:sk|pk|rk)[-_][A-Za-z0-9]|gh[a-z]_|github_pat|xox[a-z]-|AKIA|AIza|Bearer"
)
_RUN = re.compile(r"[A-Za-z0-9+_]{20,}")
_HIDDEN = "hidden-"
_STRUCTURE = frozenset(
    {"request", "response", "body", "json", "text", "headers", "query", "path", "method", "status", "fault", "data"}
)


@lru_cache(maxsize=4096)
def shown(text: str | None) -> str | None:
    """A name or a release as it is; of anything else, and of what looks like a secret, `hidden-` and a hash."""
    if text is None or not (text := text.strip()):
        return None
    if _NAME.fullmatch(text) and not _SECRET.search(text) and not any(map(_is_random, _RUN.findall(text))):
        return text
    return _HIDDEN + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _is_random(run: str) -> bool:
    """Whether a long run of letters and digits has both, as keys have; names seldom do."""
    return any(c.isdigit() for c in run) and any(c.isalpha() for c in run)


def pointer_shown(pointer: str) -> str:
    """A JSON pointer in which each name that is not the contract's own is `*`."""
    known = _vocabulary()
    steps = pointer.split("/")[1:13]
    return "".join(f"/{step if (step.isdigit() and len(step) < 7) or step in known else '*'}" for step in steps)


@cache
def _vocabulary() -> frozenset[str]:
    """The names of members, headers and parameters that the catalogue speaks of."""
    names = {name for entry in requirements().values() for read in entry.reads for name in read.names}
    for entry in requirements().values():
        if entry.check is not None:
            for schema in (entry.check.must, entry.check.should, entry.check.when):
                names |= _members(schema)
    return frozenset(names) | _STRUCTURE | frozenset(document("operations.json")["operations"])


def _members(schema: object) -> set[str]:
    if isinstance(schema, dict):
        inner = schema.get("properties")
        own = set(inner) if isinstance(inner, dict) else set()
        return own.union(*map(_members, schema.values()))
    return set[str]().union(*map(_members, schema)) if isinstance(schema, list) else set()


class Hashes:
    """Hashes of the texts of one data set: keyed, so that nobody tries out texts against the results alone."""

    def __init__(self, salt: str) -> None:
        self._key = bytes.fromhex(salt)[:64]

    def of(self, text: str | None) -> str | None:
        """16 hexadecimal digits; None for None."""
        if text is None:
            return None
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).hexdigest()
