"""Private keys that are several lines of text, as data: what they begin with, what they look like.

A block ends with its last line. Where that line is missing, because the text was cut or only speaks of a key, the
block is as long as its lines look like those of a key: what is said after it stays readable.
"""

from __future__ import annotations

from typing import Final

# A line may end in a line break, in one that is escaped, or in both, as in strings that source code joins.
_BREAK = r"[ \t\"',+>|]{0,16}+(?:\\{1,8}r)?(?:\\{1,8}n)?[ \t\"',+]{0,8}+(?:\r?\n)?[ \t\"'>|]{0,16}+"
_BASE64 = r"[A-Za-z0-9+/=]"
_CODED = _BREAK + (
    rf"(?:{_BASE64}{{16,}}+|{_BASE64}{{1,15}}+(?:(?<==)|(?=[ \t\"',]{{0,8}}(?:\r?\n|\\{{1,8}}[nr]|\Z))))"
)
_HEADER = (
    _BREAK + r"(?:Proc-Type|DEK-Info|Version|Comment|Subject|Hash|Charset|MessageID|x-[a-z-]{1,20}):[^\r\n\\]{0,200}+"
)
_LINES = rf"(?:{_HEADER}){{0,8}}+(?:(?:{_BREAK})?(?:{_CODED})++)?"
# The beginning of another key ends the search, so that no text is walked twice.
_TO_END = r"(?:[^-]|-(?!---))*+-{4,5} ?END[A-Z0-9 ]{0,40}-{0,5}"
_PUTTY_HEADER = _BREAK + (
    r"(?:Encryption|Comment|(?:Public|Private)-(?:Lines|MAC|Hash)|Key-Derivation|Argon2-[A-Za-z]{1,16}):[^\r\n\\]{0,200}+"
)

KEY_BLOCKS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "PGP and SSH2 keys",
        ("begin pgp private key", "begin ssh2"),
        rf"-{{4,5}} ?BEGIN (?:PGP|SSH2)[A-Z ]{{0,12}} PRIVATE KEY[A-Z ]{{0,8}}-{{4,5}}(?:{_TO_END}|{_LINES})",
    ),
    (
        "PuTTY keys",
        ("putty-user-key-file",),
        rf"PuTTY-User-Key-File-[0-9]:[^\r\n\\]{{0,200}}+(?:{_PUTTY_HEADER}|{_CODED})*+",
    ),
    (
        "PEM",
        ("private key-----",),
        rf"-----BEGIN [A-Z0-9 ]{{0,32}}PRIVATE KEY-----(?:{_TO_END}|{_LINES})",
    ),
)
"""What it is called, beginnings in lower case of which text that holds one has at least one, expression."""
