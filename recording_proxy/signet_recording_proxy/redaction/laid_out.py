"""Secrets that the layout of a text names: a label above the value, the head of a column, a section, a key's type.

The name and the value are in different lines or cells, so the value has to look like a secret by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from signet_recording_proxy.redaction.appearance import is_likely
from signet_recording_proxy.redaction.secret_names import NAMES, is_value, names_secret
from signet_recording_proxy.redaction.shown_text import LINE_BREAK
from signet_recording_proxy.redaction.spans import Span

STEMS: Final = (
    *("insert into ", "stringdata:", "kind: secret", "secrets:", '"kty', "kty:"),
    *("codes:", "codes\n", "codes\x0b"),
)
"""Keywords beside the names, in lower case: statements of SQL, sections of YAML, members of keys, headings."""
PREFILTER: Final = (
    r"insert into |stringdata:|kind: secret|secrets:|kty|codes"
    r"|(?:passw|passphrase|secret|token|key|pass|pwd|pw|pat|code|credential|auth|senha)"
    r"[a-z_]{0,8}(?:\\+[\"t]|[ :*_`>)\]'=.|-])*(?:\\+[nrt]|[,;|<]| {2})"
)
"""Matches a string in an encoded line that may hold one; an expression of Rust's."""
ENDS_LABEL: Final = re.compile(
    r"(?:pass(?:words?|wd|phrase|code|wort)?|tokens?|secrets?|keys?|pwd?|pat|psk|auth|jwt|pepper|credentials?|kennwort"
    r"|senha|contrasena|wachtwoord)[0-9]{0,2}(?:[ :*_`>)\]\"'=.\x0b\\-]{0,8}+(?:[\r\n\t,;|]|</)|[ ]{2})"
)
"""What follows the last word of a name, in lower case, where a line, a cell or an element ends with it."""

_STRING_ENDS = re.compile(r"\"[}\]]")
_MARKS = r"[\"'`*_\x0b]{0,4}"
_BLANKS = r"[ \t\x0b]*"
_BULLET = r"(?:#{1,6} |[-*+>•] |[0-9]{1,3}[.)] )?"
_LABEL = re.compile(
    rf"{_BLANKS}{_BULLET}{_MARKS}(?P<label>\w[\w .()/'-]{{1,60}}?){_MARKS}[:>]?{_MARKS}{_BLANKS}\\*(?=\x0b*\r?\n)"
)
_BELOW = re.compile(
    rf"(?:{LINE_BREAK}{_BLANKS}(?:[=~-]{{3,}}|```\w{{0,12}}|~~~)?{_BLANKS}\\*(?=\x0b*\r?\n)){{0,3}}"
    rf"{LINE_BREAK}{_BLANKS}{_BULLET}{_MARKS}(?P<value>[^\s\"'`<>|\\]{{6,512}}+){_MARKS}{_BLANKS}\\*(?=[\r\n]|\Z|\"\s?[,}}\]])"
)
_IN_ELEMENT = re.compile(
    r"(?P<label>\w[\w .()/-]{1,60})[ \t]*:?[ \t]*</\w{1,8}>:?\s*(?:</?\w{1,10}(?:\s[^<>]{0,80})?>\s*){0,4}"
    r"(?P<value>[^\s\"'`<>|]{6,512}+)"
)
_DELIMITERS = ("\t", "|", ";", ",")
_RULE = re.compile(r"[\s|:+=,;\x0b-]*+\Z")
_HEAD = re.compile(r"[\w .()/#%@&-]{0,40}\Z")
_QUOTED = r"\\{0,15}\"[^\"\r\n]*+\""
_CELL = {delimiter: re.compile(rf"{_QUOTED}|[^{re.escape(delimiter)}\r\n]*+") for delimiter in _DELIMITERS}
_COLUMN = re.compile(r"\S+(?: \S+)*")
_MOST_ROWS, _LONGEST_HEAD, _MOST_SECTIONS = 200, 400, 24
_AROUND = " \t\x0b\"'`*\\"


def spans(text: str, labels: Iterable[re.Match[str]], stems: Iterable[tuple[str, Sequence[int]]]) -> list[Span]:
    """The places of the secrets, in order; `labels` are the matches of `ENDS_LABEL`, `stems` the places of `STEMS`."""
    found = set[Span]()
    done = -1
    for label in labels:
        at = label.start()
        if at < done:
            continue
        start = _begin_of_line(text, at)
        if label[0].endswith("</"):
            found.update(_value_of_element(text, start, at))
            continue
        if label[0][-1] in "\r\n" and at - start <= _LONGEST_LABEL:
            found.update(_under_label(text, start))
        cells, done = _in_columns(text, start)
        found.update(cells)
    for stem, places in stems:
        done = -1
        for at in places:
            if at >= done:
                done = _end_of_reach(stem, text, at)
                found.update(_OF_STEMS[stem](text, at))
    return sorted(found)


def _begin_of_line(text: str, at: int) -> int:
    """The beginning of the line, or of the JSON string that contains this place."""
    start = max(text.rfind("\n", max(0, at - _LONGEST_HEAD), at) + 1, at - _LONGEST_HEAD, 0)
    if '"' not in text[start:at]:
        return start
    return max([start, *(opened.end() for opened in _OPENS_STRING.finditer(text, max(start, at - 200), at))])


_OPENS_STRING = re.compile(r":\s?\\{0,15}\"(?!,)")


def _end_of_reach(stem: str, text: str, at: int) -> int:
    """The end of what this stem searches: another such stem before it would find the same secrets."""
    if stem == "kind: secret":
        end = text.find("\n---", at, at + _FAR // 2)
        return at + _FAR // 2 if end < 0 else end
    if "kty" in stem:
        end = text.find("}", at, at + _NEAR // 2)
        return at + _NEAR // 2 if end < 0 else end
    return at + _NEAREST


_LONGEST_LABEL = 70
_NEAREST = 24
"""Characters. Of several stems that are nearer to each other, only the first is used."""


def _end_of_line(text: str, at: int) -> int:
    """The end of the line, or of the JSON string that contains this place."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r" and end > at)
    string = _STRING_ENDS.search(text, at, end)
    return end if string is None else string.start()


def _next_line(text: str, end: int) -> int:
    return end + 2 if text[end : end + 2] == "\r\n" else end + 1


def _trimmed(text: str, start: int, end: int) -> Span:
    """The place of a cell's text without the blanks and quotes around it."""
    cell = text[start:end]
    return start + len(cell) - len(cell.lstrip(_AROUND)), start + len(cell.rstrip(_AROUND))


def _member_name(label: str) -> str:
    """A label as the name of a member: without parentheses and their content, with underscores for blanks."""
    return re.sub(r"\W+", "_", re.sub(r"\([^()]*\)", "", label)).strip("_")


# ---- a label, and the value below or beside it


def _under_label(text: str, start: int) -> Iterator[Span]:
    label = _LABEL.match(text, start)
    value = None if label is None else _BELOW.match(text, label.end())
    # A line of Python that does nothing is `pass`.
    if label is None or value is None or label[0].strip() == "pass":
        return
    if is_likely(_member_name(label["label"]), value["value"].rstrip(".,")):
        yield value.start("value"), value.start("value") + len(value["value"].rstrip(".,"))


def _value_of_element(text: str, start: int, at: int) -> Iterator[Span]:
    opened = max(start, text.rfind(">", start, at) + 1)
    value = _IN_ELEMENT.match(text, opened)
    if value is not None and is_likely(_member_name(value["label"]), value["value"]):
        yield value.span("value")


# ---- columns


def _in_columns(text: str, start: int) -> tuple[list[Span], int]:
    """The secrets in the columns of a table whose head is the line at `start`, and where the table ends."""
    end = _end_of_line(text, start)
    found: list[Span] = []
    delimiter = _delimiter(text, start, end) if end - start <= _LONGEST_HEAD else None
    if delimiter is None:
        return found, end
    heads = [_member_name(text[slice(*_trimmed(text, *cell))]) for cell in _cells(text, start, end, delimiter)]
    columns = [number for number, head in enumerate(heads) if names_secret(head)]
    for _ in range(_MOST_ROWS if columns else 0):
        start = _next_line(text, end)
        if start >= len(text):
            break
        end = _end_of_line(text, start)
        if _RULE.match(text, start, end) is not None and start < end:
            continue
        cells = _cells(text, start, end, delimiter)
        if len(cells) == len(heads) - 1 and delimiter == "|":
            cells = [(start, start), *cells]  # a row's number was removed before, as that of a line
        if len(cells) != len(heads):
            return found, start
        for number in columns:
            cell = _trimmed(text, *cells[number])
            if is_likely(heads[number], text[slice(*cell)]):
                found.append(cell)
    return found, end


def _delimiter(text: str, start: int, end: int) -> str | None:
    """The delimiter of the table whose head this line is; None if it is no head: sentences have commas too."""
    line = text[start:end]
    following = _next_line(text, end)
    after = text[following : _end_of_line(text, following)]
    is_ruled = _RULE.match(after) is not None
    before = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
    for delimiter in _DELIMITERS:
        if delimiter in line:
            # A row's number may have been removed before, as that of a line.
            if not is_ruled and after.count(delimiter) < max(1, line.count(delimiter) - 1):
                return None
            if before.count(delimiter) == line.count(delimiter) and _RULE.match(before) is None:
                return None
            cells = line.strip(" \x0b\\|" if delimiter == "|" else " \x0b\\").split(delimiter)
            return delimiter if len(cells) > 1 and all(_HEAD.match(cell.strip(_AROUND)) for cell in cells) else None
    words = _COLUMN.findall(line) if "  " in line else []
    return " " if len(words) > 1 and "   " in line.strip() and all(map(_HEAD.match, words)) else None


def _cells(text: str, start: int, end: int, delimiter: str) -> list[Span]:
    if delimiter == " ":
        return [match.span() for match in _COLUMN.finditer(text, start, end)]
    end = start + len(text[start:end].rstrip(" \x0b"))
    if delimiter == "|":
        start, end = _trimmed_of_bars(text, start, end)
    cells: list[Span] = []
    at = start
    while at <= end:
        cell = _CELL[delimiter].match(text, at, end)
        if cell is None:
            break
        cells.append(cell.span())
        at = cell.end() + 1
    return cells


def _trimmed_of_bars(text: str, start: int, end: int) -> Span:
    line = text[start:end]
    first, last = start + len(line) - len(line.lstrip(" \x0b")), start + len(line.rstrip(" \x0b\\"))
    return first + text.startswith("|", first), last - (last > first + 1 and text[last - 1] == "|")


# ---- columns of SQL


_INSERTED = re.compile(r"(?i:insert into)\s+[^\s(]{1,128}\s*\((?P<names>[^()]{1,1000})\)\s*(?i:values)\s*(?=\()")
_ROW = re.compile(r"\s*,?\s*\((?P<values>(?:'(?:[^'\\\n]|''|\\.)*+'|[^()'\n]|\([^()\n]{0,80}\))*+)\)")
_LITERAL = re.compile(r"'((?:[^'\\\n]|''|\\.)*+)'|[^,'\n]++")


def _inserted(text: str, at: int) -> Iterator[Span]:
    statement = _INSERTED.match(text, at)
    if statement is None:
        return
    names = [name.strip(' \t\r\n\x0b`"[]\\') for name in statement["names"].split(",")]
    end = statement.end()
    for _ in range(_MOST_ROWS):
        row = _ROW.match(text, end)
        if row is None:
            return
        end = row.end()
        values = [value for value in _LITERAL.finditer(text, *row.span("values")) if value[0].strip()]
        if len(values) != len(names):
            continue
        for name, value in zip(names, values, strict=True):
            if value[1] is not None and is_likely(name, value[1]):
                yield value.span(1)


# ---- sections of YAML


_SECTION = re.compile(r"(?P<indent>[ \t\x0b]*)[^\r\n]*")
_ENTRY = re.compile(
    rf"(?P<indent>{_BLANKS})(?:- )?[A-Za-z_][\w.-]{{0,80}}:[ \t]+[\"']?"
    rf"(?P<value>[^\s\"'#|>{{}}\[\]][^\s\"'\\]{{5,16384}})[\"']?{_BLANKS}\\*(?:#[^\r\n]*)?(?=[\r\n\"]|\Z)"
)
_DATA = re.compile(r"\n(?P<indent>[ \t\x0b]*)(?:stringData|data):[ \t\x0b\\]*(?=[\r\n])")
_FAR, _NEAR = 4000, 300


def _in_section(text: str, at: int, *, drawn: bool = False) -> Iterator[Span]:
    """The values in the lines that are indented deeper than the line at this place."""
    start = text.rfind("\n", 0, at) + 1
    head = _SECTION.match(text, start)
    end = _end_of_line(text, at)
    for _ in range(_MOST_ROWS):
        start = _next_line(text, end)
        entry = _ENTRY.match(text, start)
        line = _SECTION.match(text, start)
        end = _end_of_line(text, start)
        if start >= len(text) or head is None or line is None or len(line["indent"]) <= len(head["indent"]):
            return
        if entry is not None and is_value(entry["value"]) and (not drawn or is_likely("secret", entry["value"])):
            yield entry.span("value")


def _in_data(text: str, at: int) -> Iterator[Span]:
    """The values of a Secret of Kubernetes."""
    begins = max(text.rfind("\n---", 0, at), at - _FAR, 0)
    ends = text.find("\n---", at, at + _FAR)
    for data in islice(_DATA.finditer(text, begins, at + _FAR if ends < 0 else ends), _MOST_SECTIONS):
        yield from _in_section(text, data.end("indent"))


# ---- keys in JSON, and codes


_KEY_MEMBER = re.compile(
    r"(?<![\w-])\\{0,4}[\"']?"
    rf"(?:{'|'.join(NAMES.private_key_members)})\\{{0,4}}[\"']?\s{{0,8}}:\s{{0,8}}\\{{0,4}}[\"']?"
    r"(?P<value>[A-Za-z0-9_-]{20,4096}+)(?![\w.])"
)
_CODE = r"[A-Za-z0-9]{4,8}(?:[- ]?[A-Za-z0-9]{4,8}){0,2}"
_CODES = re.compile(
    rf"codes[:*]{{0,3}}(?P<value>(?:{LINE_BREAK}{_BLANKS}{_BULLET}{_CODE}{_BLANKS}\\*(?=[\r\n\x0b]|\Z)){{2,20}})"
)
_NAMES_CODES = re.compile(r"(?i:(?:recovery|backup|scratch|emergency|2fa|mfa)[ \w-]{0,24})\Z")


def _of_key(text: str, at: int) -> Iterator[Span]:
    """The private members of the JSON Web Key whose type is at this place."""
    begins, ends = text.rfind("{", max(0, at - _FAR), at), text.find("}", at, at + _FAR)
    begins, ends = (begins, ends) if 0 <= begins < ends else (max(0, at - _NEAR), at + _NEAR)
    for member in _KEY_MEMBER.finditer(text, begins, ends):
        yield member.span("value")


def _codes(text: str, at: int) -> Iterator[Span]:
    codes = _CODES.match(text, at) if _NAMES_CODES.search(text, max(0, at - 40), at) else None
    if codes is not None and any(map(str.isdigit, codes["value"])):
        yield _trimmed(text, codes.start("value") + 1, codes.end("value"))


_OF_STEMS = {
    "insert into ": _inserted,
    "stringdata:": _in_section,
    "kind: secret": _in_data,
    "secrets:": lambda text, at: _in_section(text, at, drawn=True),
    **dict.fromkeys(('"kty', "kty:"), _of_key),
    **dict.fromkeys(("codes:", "codes\n", "codes\x0b"), _codes),
}
