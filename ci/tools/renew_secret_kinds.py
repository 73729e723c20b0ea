"""Renew the kinds of secrets that come from the public rules of gitleaks (MIT).

    git clone --depth 1 --branch VERSION https://github.com/gitleaks/gitleaks
    python ci/tools/renew_secret_kinds.py gitleaks VERSION

The data are facts: names, keywords, and the form of values. A *named* kind is a value that follows its vendor's name; a
*shaped* kind is recognised by its own beginning. Each kind has an example, drawn from its expression and stored in
halves so that no scanner reports it, and a counterexample that is too short to be a secret. `left_out` gives the reason
for each rule that is not used.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tomllib
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public parses an expression
from typing import Any

DATA = Path(__file__).parents[2] / "recording_proxy" / "signet_recording_proxy" / "redaction"
SOURCE = "https://github.com/gitleaks/gitleaks"
_LEAD = re.compile(
    r"^(?:\(\?i\))?\[\\w\.-\]\{0,50\}\?(?:\(\?i:\[\\w\.-\]\{0,50\}\?)?"
    r"\(\?:(?P<names>.*?)\)\(\?:\[ \\t\\w\.-\]\{0,20\}\)"
)
_END = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"
_VALUE = re.compile(r"\[\\x60'\"\\s=\]\{0,5\}\((?P<value>.*)\)\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$\)$")
_MOST_REPEATS = 12
"""An example repeats a part at most this often, unless the expression demands more."""
_IDENTIFIERS = ("client-id", "access-id", "api-id", "public-key", "pub-key", "pub-api-key")
_LEFT_OUT = {
    "generic-api-key": "names are the recorder's own",
    "curl-auth-header": "command lines are the recorder's own",
    "curl-auth-user": "command lines are the recorder's own",
    "private-key": "blocks of keys are the recorder's own",
    "pkcs12-file": "a name of a file, not a secret",
    "kubernetes-secret-yaml": "names are the recorder's own",
    "jwt": "the recorder's own",
    "jwt-base64": "what an encoding hides is the recorder's own",
    "hashicorp-tf-password": "names are the recorder's own",
    "nuget-config-password": "markup is the recorder's own",
    "freemius-secret-key": "names are the recorder's own",
    "sidekiq-sensitive-url": "passwords of addresses are the recorder's own",
    "aws-amazon-bedrock-api-key-short-lived": "the beginning of one that is the recorder's own",
    "sourcegraph-access-token": "any hash would be one; the others are the recorder's own",
    "square-access-token": "what base64 often holds would be one; the others are the recorder's own",
    "facebook-access-token": "any number with a percent sign and a word would be one",
}


def to_python(expression: str) -> tuple[str, bool]:
    """Translate an expression of RE2 to Python, and say whether all of it ignores case."""
    expression = expression.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    ignore_case = expression.startswith("(?i)")
    expression = expression.removeprefix("(?i)")
    while (flag := expression.find("(?i)")) >= 0:
        end = _end_of_group(expression, flag + 4)
        expression = f"{expression[:flag]}(?i:{expression[flag + 4 : end]}){expression[end:]}"
    return expression, ignore_case


def _end_of_group(expression: str, at: int) -> int:
    depth, in_set = 0, False
    while at < len(expression):
        character = expression[at]
        if character == "\\":
            at += 1
        elif in_set:
            in_set = character != "]"
        elif character == "[":
            in_set = True
        elif character == "(":
            depth += 1
        elif character == ")":
            if not depth:
                return at
            depth -= 1
        at += 1
    return at


class Sampler:
    """Draws texts that match an expression."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def text(self, expression: str, *, ignore_case: bool) -> str:
        """Draw one text."""
        return self._draw(_parser.parse(expression, re.IGNORECASE if ignore_case else 0))

    def _draw(self, items: Any) -> str:
        return "".join(self._draw_item(kind, value) for kind, value in items)

    def _draw_item(self, kind: Any, value: Any) -> str:
        if kind is _constants.LITERAL:
            return chr(value)
        if kind is _constants.IN:
            return self._random.choice(_characters(value))
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            least, most, inner = value
            count = max(least, min(_MOST_REPEATS, most)) if least else 0
            return "".join(self._draw(inner) for _ in range(count))
        if kind is _constants.SUBPATTERN:
            return self._draw(value[3])
        if kind is _constants.BRANCH:
            return self._draw(value[1][0])
        return "." if kind is _constants.ANY else "x" if kind is _constants.NOT_LITERAL else ""


def _characters(members: Any) -> list[str]:
    characters: list[str] = []
    for kind, value in members:
        if kind is _constants.LITERAL:
            characters.append(chr(value))
        elif kind is _constants.RANGE:
            characters += map(chr, range(value[0], value[1] + 1))
        elif kind is _constants.NEGATE:
            return [" "]
        elif kind is _constants.CATEGORY:
            characters += "0123456789" if "DIGIT" in str(value) else "abcdefghkmnpqrstuvwxyz0123456789"
    return [character for character in characters if character.isprintable()] or ["x"]


def _kind_of(rule: dict[str, Any]) -> dict[str, Any] | str:
    """A rule as data, or the reason to leave it out."""
    name = rule["id"]
    if name in _LEFT_OUT:
        return _LEFT_OUT[name]
    if name.endswith(_IDENTIFIERS):
        return "says who it is, and is no secret"
    # Take the first of several shapes: the recorder itself has kinds for shapes with their own beginning.
    expression = rule["regex"].partition(r"|\b(ATATT3")[0]
    lead, value = _LEAD.match(expression), _VALUE.search(expression)
    facts: dict[str, Any] = {"id": name, "keywords": rule["keywords"]}
    if lead is not None and value is not None:
        names, _ = to_python(lead["names"].replace("(?-i:", "(?:"))
        shape, ignore_case = to_python(value["value"])
        facts |= {
            "sort": "named",
            "names": names,
            "value": shape,
            "any_case": ignore_case or expression.startswith("(?i)"),
        }
    elif lead is not None:
        return "several shapes, of which those with a beginning are the recorder's own"
    else:
        shape, ignore_case = to_python(expression.replace(_END, ""))
        facts |= {"sort": "shaped", "value": shape, "any_case": ignore_case}
    if "entropy" in rule:
        facts["entropy"] = rule["entropy"]
    return facts | _examples(facts)


def _examples(facts: dict[str, Any]) -> dict[str, Any]:
    pattern = re.compile(facts["value"], re.IGNORECASE if facts["any_case"] else 0)
    for turn in range(200):
        text = Sampler(f"{facts['id']}{turn}").text(facts["value"], ignore_case=facts["any_case"])
        mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
        if pattern.search(f"{text} ") and (mixed or facts["sort"] == "shaped"):
            break
    else:
        raise SystemExit(f"{facts['id']}: no example matches {facts['value']}")
    text = text.strip()
    middle = len(text) // 2
    return {"example": [text[:middle], text[middle:]], "counterexample": text[: max(3, len(text) // 3)]}


def main() -> None:
    """Read the rules and write the data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a clone of gitleaks")
    parser.add_argument("version", help="its version, which the data names")
    options = parser.parse_args()
    folder, version = options.folder, options.version
    rules = tomllib.loads((folder / "config" / "gitleaks.toml").read_text())["rules"]
    kinds, left_out = [], {}
    for rule in rules:
        kind = _kind_of(rule)
        if isinstance(kind, str):
            left_out[rule["id"]] = kind
        else:
            kinds.append(kind)
    data = {"source": SOURCE, "version": version, "licence": "gitleaks.LICENSE", "kinds": kinds, "left_out": left_out}
    (DATA / "gitleaks.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    (DATA / "gitleaks.LICENSE").write_text((folder / "LICENSE").read_text())
    print(f"{len(kinds)} kinds of {len(rules)} rules of {version}; {len(left_out)} left out")


if __name__ == "__main__":
    main()
