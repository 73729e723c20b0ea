"""HTML made of elements whose text is always escaped: what is not `Markup` cannot be markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from signet_conformance.errors import printable

MAX_TEXT = 2000
_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """HTML, put together by `element` alone."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text: one line of bounded length, control and bidirectional characters shown as escapes."""
    return value if isinstance(value, Markup) else Markup(escape(printable(value, MAX_TEXT)))


def joined(parts: Iterable[str | Markup]) -> Markup:
    """Several parts one after the other."""
    return Markup("".join(text(part) for part in parts))


def element(
    tag: str, /, *content: str | Markup | Iterable[str | Markup], **attributes: str | int | bool | None
) -> Markup:
    """An element. An attribute `class_` is written `class`, `data_verdict` is written `data-verdict`.

    True writes an attribute without a value; None and False leave it out.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    inner = "".join(text(part) if isinstance(part, str) else joined(part) for part in content)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")
