"""Secrets whose name stands in another line or cell; what only looks like such a layout stays."""

from __future__ import annotations

import json

import pytest

from tests.recording_proxy.redaction.lines import body_json

DRAWN = "v7KqZ2mXw9TpR4Ls8Bn3"
INVENTED = "Harvest.Copper#83"
HEXADECIMAL = "0d7c5be19af24d3c8e61b7f09a52c4d8"
KEY = "lOKVaA00IECjpiXmkRTe6HqSq58dwQMG7bJtAlHpqZM"
LAID_OUT = {
    "a label": f"Password:\n  {INVENTED}\nok",
    "a heading": f"### API key\n\n```\n{DRAWN}\n```",
    "an underlined heading": f"Client secret\n=============\n{DRAWN}",
    "a bold label": f"**Token:**\n`{DRAWN}`",
    "an item": f"- Token:\n  - {DRAWN}",
    "a prompt": f"Username:\nada\nPassword:\n{INVENTED}",
    "a list of terms": f"<dt>Password</dt>\n<dd>{INVENTED}</dd>",
    "a row of HTML": f"<tr><th>Token</th><td><code>{DRAWN}</code></td></tr>",
    "commas": f"name,username,password\nwiki,ada,{INVENTED}\n",
    "quoted commas": f'"title","login","password"\n"vpn, old","ada","{INVENTED}"',
    "semicolons": f"service;user;password;note\nmail;ada;{INVENTED};old",
    "tabs": f"host\tuser\tpass\ndb1\tada\t{INVENTED}",
    "a table of Markdown": f"| env | API key |\n|-----|---------|\n| prod | `{DRAWN}` |",
    "a table with a hexadecimal key": f"| env | API key |\n|---|---|\n| prod | {HEXADECIMAL} |",
    "a table of a database": f" id | username | password\n----+-----+----\n  1 | ada | {INVENTED}\n  2 | x | y",
    "a table in a frame": f"+------+----------+\n| user | password |\n+------+----------+\n| ada  | {INVENTED} |",
    "columns": f"NAME      TOKEN\nrunner-1  {DRAWN}",
    "rows of SQL": f"INSERT INTO users (login, password, x) VALUES ('ada', '{INVENTED}', f(1));",  # noqa: S608 - a text to search; no database reads it
    "a section of strings": f"stringData:\n  admin: plainword\n  db.conf: {DRAWN}\nkind: Secret",
    "a section of data": f"kind: Secret\nmetadata:\n  name: a\ndata:\n  mongo: {DRAWN}",
    "a section of secrets": f"secrets:\n  mail: {DRAWN}\nport: 1",
    "a private key of JSON": f'{{"kty":"OKP","crv":"Ed25519","d":"{KEY}","x":"abc"}}',
    "a shared key of JSON": f'{{"k":"{KEY}","kty":"oct"}}',
    "keys of JSON": f'{{"keys":[{{"kty":"oct","k":"{KEY[::-1]}"}},{{"kty":"oct","k":"{KEY}"}}]}}',
    "two Secrets": f"kind: Secret\ndata:\n  a: {HEXADECIMAL[::-1]}\n---\nkind: Secret\ndata:\n  b: {HEXADECIMAL}",
    "codes": f"Recovery codes:\n{HEXADECIMAL[:5]}-{HEXADECIMAL[5:10]}\n{HEXADECIMAL[10:15]}-{HEXADECIMAL[15:20]}\n",
}


@pytest.mark.parametrize("layout", LAID_OUT)
def test_a_secret_of_a_layout_is_redacted(layout: str) -> None:
    """Alone, as a string of JSON in a string, and inside a long text."""
    text, filler = LAID_OUT[layout], "All is well.\n" * 300
    for carried in (text, json.dumps({"content": text}), f"{filler}\n{text}\n\n{filler}"):
        written = body_json({"transcript": carried})["transcript"]
        assert "<redacted:1>" in written
        assert not any(secret in written for secret in (DRAWN, INVENTED, HEXADECIMAL, KEY, HEXADECIMAL[10:20]))


@pytest.mark.parametrize(
    "text",
    [
        "Password:\n  at least eight characters",
        "### API key\n\nGet one in the settings of 2026.",
        "Token:\n\n    $ signet token create",
        "| Name | Type | Default |\n|---|---|---|\n| password | string | none |",
        "| Key | Value |\n|---|---|\n| session | v7KqZ2mXw9TpR4Ls8Bn3 |",
        "token,count\nthe,1204\nand,988",
        "the name, the password\nand, of course, 2 more",
        "NAME   TOKEN\na-1    none\nb-2    expired",
        "class A2(B):\n    pass\n\n\nX520Pseudonym.componentType2",
        "INSERT INTO tokens (id, used) VALUES ('v7KqZ2mXw9TpR4Ls8Bn3', 1);",
        "secrets:\n  db_password:\n    file: ./db2.txt\n  mail: vault-1",
        '{"kty":"EC","crv":"P-256","x":"SOJcbNrJ9qOpVJNFKK","y":"lOKVaA00IECjpiXmkRTe6HqSq58dwQMG"}',
        "Status codes:\n2001 4004\n5003",
        "Your key is below\nhttps://example.org/a1B2c3D4",
    ],
)
def test_what_only_looks_so_stays(text: str) -> None:
    """Documents, counts of words, public keys."""
    assert body_json({"transcript": text})["transcript"] == text
