"""Tokens and private keys with a shape of their own: who issues them, where they begin, what they look like.

`secret_kinds.json` holds the tokens, written from what issuers publish of their formats. A shape is listed only if
ordinary text cannot have it: a prefix of its own, and as many characters as the issuer says. Anything vaguer belongs to
the names in `secret_names`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from signet_recording_proxy.redaction.tables import Expression, read_table

_PARTS: Final = {
    "UUID": r"[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}",
    # A short word before letters of one case may begin a name, and before a hash an id.
    "EACH_OF_THREE": r"(?=[A-Za-z_-]{0,99}+[0-9])(?=[a-z0-9_-]{0,99}+[A-Z])(?=[A-Z0-9_-]{0,99}+[a-z])",
}


class SecretKind(Struct, frozen=True):
    """One kind. Where its expression has a group, that is the secret.

    None may follow a letter or a digit directly, and each is one run of fifteen characters or more. Text that holds
    one has at least one of `stems`, which are in lower case.
    """

    issuer: str
    stems: tuple[str, ...]
    expression: Expression
    stem_inside: bool = False
    """The secret does not begin with what it is known by."""
    like_name: bool = False
    """It is a short word before a hash or a name, as an id of a session may be."""


KINDS: Final = read_table("secret_kinds.json", tuple[SecretKind, ...], _PARTS)

# A block of a private key ends with its last line. Where that line is missing, because the text was cut or only speaks
# of a key, the block is as long as its lines look like those of a key: what is said after it stays readable.
# A line may end in a line break, in an escaped one, shown or not, or in both, as in strings that source code joins.
_BREAK = r"[ \t\"',+>|]{0,16}+(?:\\{1,8}r)?(?:\\{0,8}(?:\\n|\x0b{1,9}\n))?[ \t\"',+]{0,8}+(?:\r?\n)?[ \t\"'>|]{0,16}+"
_BASE64 = r"[A-Za-z0-9+/=]"
_CODED = _BREAK + (
    rf"(?:{_BASE64}{{16,}}+|{_BASE64}{{1,15}}+(?:(?<==)|(?=[ \t\"',]{{0,8}}(?:\r?\n|\\{{1,8}}[nr]|\\{{0,7}}\x0b|\Z))))"
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
        rf"-----BEGIN [A-Z0-9 ]{{0,32}}PRIVATE KEY-----(?![`'\"][^\\\"+]{{0,200}}[.`])(?:{_TO_END}|{_LINES})",
    ),
    (
        "OpenVPN static keys",
        ("begin openvpn static key",),
        rf"-----BEGIN OpenVPN Static key V[0-9]-----(?:{_TO_END}|{_LINES})",
    ),
)
"""Name, stems (a text with the shape has one of them in lower case), expression."""
