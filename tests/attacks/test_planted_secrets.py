"""Secrets in the forms that some 250 vendors and tools publish, written down without a look at the patterns.

`planted_secrets.json` holds name, text and secret; `{}` in the text is the secret, and `<an 20>` draws it: no secret of
anybody stands in a file. `<password >` is an element, `<password>` draws one. Nine in ten must not reach the disk,
whatever kinds the recorder knows.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from pathlib import Path

import pytest

from signet_recording_proxy.redaction.redactor import Redactor

ROWS = json.loads(Path(__file__).with_name("planted_secrets.json").read_text())["secrets"]
LETTERS = {
    "an": string.ascii_letters + string.digits, "lo": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits, "hx": "0123456789abcdef", "dg": string.digits,
    "u64": string.ascii_letters + string.digits + "-_", "b32": string.ascii_uppercase + "234567",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", "bech": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}  # fmt: skip
RECIPE = re.compile(rf"<({'|'.join(LETTERS)}|b64|ub64|pem|password|uuid|jwt)(?: ([A-Z ]+))?(?: ([0-9]+))?>")
WORDS = ("river", "Falcon", "copper", "Walnut", "Tiger", "marble", "Orchid", "velvet", "Rocket", "Harbor")
MOST_MISSED = 0.1
FILLER = "I looked at the file and it reads well; the next step is to move the parser into a module of its own.\n"


def drawn(match: re.Match[str], by: random.Random) -> str:
    """What a recipe stands for."""
    sort, of, count = match[1], match[2], int(match[3] or 0)
    if sort in LETTERS:
        return "".join(by.choice(LETTERS[sort]) for _ in range(count))
    if sort == "password":
        return f"{by.choice(WORDS)}{by.choice('!#-_@$')}{by.choice(WORDS)}{by.randrange(10, 9999)}"
    if sort == "uuid":
        return str(uuid.UUID(int=by.getrandbits(128), version=4))
    if sort == "jwt":
        members = ({"alg": "HS256", "typ": "JWT"}, {"sub": str(by.getrandbits(40))})
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in members]
        return ".".join((*parts, base64.urlsafe_b64encode(by.randbytes(32)).decode().rstrip("=")))
    text = base64.b64encode(by.randbytes(count)).decode()
    if sort == "pem":
        lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
        return f"-----BEGIN {of}-----\n{lines}\n-----END {of}-----"
    return text.translate(str.maketrans("+/", "-_", "=")) if sort == "ub64" else text


def shown(secret: str, redacted: str) -> bool:
    """Whether half of a secret or more is readable."""
    half = max(8, len(secret) // 2)
    return any(secret[at : at + half] in redacted for at in range(max(1, len(secret) - half + 1)))


@pytest.mark.parametrize(
    ("seed", "together", "around"),
    [(1, 1, ""), (2, 1, ""), (1, 8, FILLER * 100)],
    ids=["prompt", "other-prompt", "transcript"],
)
def test_nine_in_ten_planted_secrets_are_not_recorded(seed: int, together: int, around: str) -> None:
    """In a prompt of their own, and some together, each deep in a transcript."""
    by = random.Random(seed)
    planted = []
    for name, text, recipe in ROWS:
        secret = RECIPE.sub(lambda match: drawn(match, by), recipe)
        said = RECIPE.sub(lambda match: drawn(match, by), text).replace("{}", secret, 1)
        planted.append((name, secret, f"{said}\n{around}"))
    missed = []
    for at in range(0, len(planted), together):
        group = planted[at : at + together]
        redacted = str(Redactor({}).document({"text": around + "".join(said for _, _, said in group)})["text"])
        missed += [name for name, secret, _ in group if shown(secret, redacted)]
    assert len(missed) <= MOST_MISSED * len(ROWS), missed
    assert len(ROWS) >= 400
