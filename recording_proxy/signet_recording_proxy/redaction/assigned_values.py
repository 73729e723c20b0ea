"""Finds secrets that a text assigns to a name: in settings, scripts, command lines, markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_recording_proxy.redaction.appearance import is_scrambled
from signet_recording_proxy.redaction.secret_names import is_secret_member, is_secret_name, is_value, names_key
from signet_recording_proxy.redaction.shown_text import LINE_BREAK
from signet_recording_proxy.redaction.spans import LONGEST, Span, Token, end_of_word, replace_spans

STRING_PREFIX = "(?:[bB][rR]?|[rR][bB]?|[uULN])"
"""Prefixes of strings that hold no variable: bytes, raw, wide, national."""
_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_.])(?<![A-Za-z0-9_.]-)([A-Za-z_][A-Za-z0-9_.-]{1,63}+)(\\{0,4}[\"'])?[ \t]{0,40}+"
    rf"(:=|=>|=|:)[ \t]{{0,40}}+(?:{STRING_PREFIX}(?=\\{{0,4}}[\"'`]))?(\\{{0,4}}[\"'`])?"
)
_BLOCK = re.compile(
    rf"[|>][+-]?[1-9]?[+-]?[ \t]{{0,40}}{LINE_BREAK}(?:[ \t]{{0,64}}{LINE_BREAK}){{0,8}}([ \t]{{1,64}}+)(?=\S)"
)
_BLOCK_LINE = re.compile(rf"{LINE_BREAK}([ \t]{{1,64}}+)(\S{{1,4096}}+)[ \t]{{0,64}}(?=[\r\n\x0b]|\Z)")
_BARE_LINE = re.compile(r"\S{1,4096}+(?=[ \t]{0,64}(?:[\r\n\x0b]|\Z))")
_INDENTED = re.compile(rf"[ \t]{{0,64}}{LINE_BREAK}([ \t]{{1,64}}+)\S")
_LONGEST = 4096
_IN_A_RESOURCE = re.compile(r"\barn:[a-z0-9:-]{1,60}:\Z")
"""Before the name of a resource of AWS: `arn:aws:secretsmanager:eu-west-1:1234:secret:prod/db` holds no value."""
_BARE = re.compile(rf"[^\s\"'<>;&|,(){{}}\[\]`\\]{{4,{LONGEST}}}+")
_VALUE_TAG = r"(?:\s{0,64}<(?:[\w-]{1,16}:)?(?i:value)(?:\s[^<>]{0,80})?>)?"
_ELEMENT = re.compile(rf"<([A-Za-z_][A-Za-z0-9_.:-]{{1,63}}+)(?:\s[^<>]{{0,200}}+)?>{_VALUE_TAG}([^<>]{{3,400}}+)</")
_NAMED = re.compile(r"\b(?:name|key|id|type)=\\{0,4}[\"']?([A-Za-z0-9_.\[\]-]{1,64}+)", re.IGNORECASE)
_VALUED = re.compile(r"\b(?:value|content)=\\{0,4}[\"']([^\"'<>\\]{3,400}+)", re.IGNORECASE)
_ELEMENTS = ("input", "add", "property", "setting", "param", "meta", "option", "data", "string", "entry")
_INPUT = re.compile(
    rf"<(?:{'|'.join(_ELEMENTS)}|parameter)\s([^<>]{{1,600}}+)>(?:{_VALUE_TAG}([^<>]{{3,400}}+)</)?", re.IGNORECASE
)
ELEMENTS = tuple(f"<{element}".encode() for element in _ELEMENTS)
"""Beginnings of elements that name a value in an attribute."""
_ASCII_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[^\W\d_]")


def _is_assigned(name: str, value: str, *, quoted: bool, sets_variable: bool) -> bool:
    """Whether assigning this value to this name in text gives away a secret.

    Prose and code name secrets all the time: `token: string`, `password = get_password()`. So a value without quotes
    has to look like a secret, unless it is assigned to a shell variable.
    """
    if not is_value(value):
        return False
    variable = sets_variable and name.isupper()
    if not (quoted or variable or _has_digit(value) or is_scrambled(value)):
        return False
    if names_key(name) and sets_variable and len(value) >= 8 and _mixes(value):
        return True
    if not is_secret_member(name, value):
        return False
    if quoted:
        looks_secret = _has_digit(value) or is_scrambled(value)
        return len(value) >= 4 and (looks_secret or is_secret_name(name)) and not value.isspace()
    return len(value) >= 6 and (variable or len(value) >= 8 or _mixes(value))


def _has_digit(value: str) -> bool:
    return _ASCII_DIGIT.search(value) is not None or (not value.isascii() and any(map(str.isdigit, value)))


def _mixes(value: str) -> bool:
    return _has_digit(value) and _LETTER.search(value) is not None


def replace_assignments(text: str, token: Token) -> str:
    """`text` with tokens for the secrets in `name = value`, in any of the spellings of settings and scripts."""
    return replace_spans(text, _assigned_spans(text), token)


def _assigned_spans(text: str) -> Iterator[Span]:
    done = 0
    for match in _ASSIGNMENT.finditer(text):
        start = match.end()
        if start < done or _IN_A_RESOURCE.search(text, max(0, match.start() - 64), match.start(1)) is not None:
            continue
        name, opened = match[1], match[4]
        block = _BLOCK.match(text, start) if opened is None else None
        if block is not None:
            start, opened = block.end(), ""
            end = _end_of_block(text, match.start(), block)
        else:
            end = end_of_value(text, start, opened)
        value = text[start:end]
        operator = text[match.end(1) : match.end(3)]
        if end > start and _is_assigned(name, value, quoted=opened is not None, sets_variable=operator == "="):
            end = end_of_word(text, start, end) if opened is None else end
            yield start, end
            done = end


def end_of_value(text: str, start: int, opened: str | None) -> int:
    """The end of the value that begins at `start`, after the quote `opened` if there is one."""
    if opened is not None:
        line_end = text.find("\n", start, start + _LONGEST)
        line_end = min(start + _LONGEST, len(text)) if line_end < 0 else line_end
        first = end = text.find(opened, start, line_end)
        while end >= 0 and not _is_closing_quote(text, start, end, opened):
            end = text.find(opened, end + len(opened), line_end)
        # In some languages a backslash before a quote escapes nothing.
        return max(start, first if end < 0 else end)
    value = _BARE.match(text, start)
    if value is None or text[value.end() : value.end() + 1] in ("(", "[", "{"):
        return start
    return start + len(value[0] if value[0].endswith("...") else value[0].rstrip(".:!?"))


def _end_of_block(text: str, name: int, block: re.Match[str]) -> int:
    """The end of a YAML block whose lines are one word each; the beginning of a block of sentences."""
    indented = text[text.rfind("\n", max(0, name - _LONGEST), name) + 1 : name]
    if len(block[1]) <= len(indented) - len(indented.lstrip(" \t")):
        return block.end()
    word = _BARE_LINE.match(text, block.end())
    if word is None:
        return block.end()
    end = word.end()
    while (line := _BLOCK_LINE.match(text, end)) is not None and len(line[1]) >= len(block[1]):
        end = line.end(2)
    rest = _INDENTED.match(text, end)
    return block.end() if rest is not None and len(rest[1]) >= len(block[1]) else end


def _is_closing_quote(text: str, start: int, quote: int, opened: str) -> bool:
    """Whether a quote ends the value that begins at `start`: an escaped quote has more backslashes before it."""
    before = quote
    while before > start and text[before - 1] == "\\":
        before -= 1
    depth = len(opened) - 1
    return (quote - before + depth) % (2 * depth + 2) == depth


def replace_markup(text: str, token: Token) -> str:
    """`text` with tokens for the secrets in `<password>…</password>` and in fields of HTML forms."""
    if "<" not in text:
        return text
    text = _ELEMENT.sub(lambda match: _clean_element(match, token), text)
    return replace_spans(text, _in_fields(text), token)


def _clean_element(match: re.Match[str], token: Token) -> str:
    name, value = match[1].rpartition(":")[2], match[2].strip()
    if not is_secret_member(name, value) or len(value.split()) > 1:
        return match[0]
    return match[0].replace(value, token(value))


def _in_fields(text: str) -> Iterator[Span]:
    for element in _INPUT.finditer(text):
        value = _VALUED.search(text, *element.span(1))
        span = element.span(2) if value is None else value.span(1)
        for name in _NAMED.finditer(text, *element.span(1)) if span[0] >= 0 else ():
            if is_secret_member(name[1], text[slice(*span)].strip()) and len(text[slice(*span)].split()) == 1:
                yield span
                break
