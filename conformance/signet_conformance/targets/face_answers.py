"""The way of a hook's answer to the model: where it stands in the host's requests, in whose role, for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

from signet_conformance.files.documents import Items, Maybe, Part, Text

TEXT = "TEXT"
"""Stands for the given text in the pattern `wrap`."""

Request = Literal["turn", "title", "compaction"]
Lasts = Literal["request", "turn", "until-compaction", "session"]
_LASTS = get_args(Lasts)
Wrap = Annotated[
    str, Field(pattern=rf"\b{TEXT}\b", description="a text with TEXT in it: what the host writes around it")
]


def wrap_text(wrap: str, text: str) -> str:
    """Put a text into the pattern that the host writes around it."""
    return re.sub(rf"\b{TEXT}\b", lambda _: text, wrap)


class Placement(Part):
    """One place where the host puts a text that its connector gave."""

    role: Literal["system", "user"]
    """Whose words it is; system includes developers."""
    place: Literal["system", "after-system", "before-prompt", "after-prompt", "prompt-begin", "prompt-end", "end"]
    """In the host's own system text; in a message of its own after that, before or after the user's newest, or at the
    end; or within the user's newest message, at its beginning or end.
    """
    wrap: Wrap = TEXT
    lasts: Lasts
    """In how many requests it stands: that one, those of the turn, or more."""
    order: int = 0
    """Its rank among the texts at the same place."""
    shared: bool = False
    """true where all texts at that place are one message"""
    of: Request = "turn"
    """The next request of which kind it goes into."""
    asked_anew: bool = False
    """true where the host asks for it before each request: the connector keeps it there, or not"""


class Compaction(Part):
    """The remains of a conversation that is compacted."""

    keeps: Literal["nothing", "prompts", "last-turn", "last-reply"]
    """What stays beside the summary: nothing, each of the user's messages, the newest turn, or the newest reply alone.
    """
    role: Literal["user", "assistant"] = "user"
    wrap: Wrap = TEXT
    """a text with TEXT in it: what the host writes around the summary"""
    question: Maybe[Text] = None
    """The question that is put in the user's mouth before a summary that the model says."""
    place: Literal["first", "last"] = "first"
    """Where the summary stands beside what stays."""


class AnswerPlaces(Part):
    """How the host writes its requests to the model, as recordings of the real program show them."""

    api: Literal["/v1/messages", "/v1/responses", "/v1/chat/completions"]
    """The interface it speaks."""
    sources: dict[str, Items[Placement]]
    """Event or return value of the connector, such as SessionStart resume, to where its text is put; an empty list
    where the host throws it away. Nothing is said of a session in which another one gave something.
    """
    beside: dict[Literal["title", "compaction"], bool] = Field(default_factory=dict)
    """The requests that the host makes beside those of turns, and whether it asks its connector for text before such a
    one. Those that were not seen are left out.
    """
    compaction: Maybe[Compaction] = None
    """Left out where nothing was seen of it."""

    def in_header(self) -> Mapping[str, str | bool]:
        """The members of a recording's header that say what the host does with texts for a turn."""
        turns = [each for placements in self.sources.values() for each in placements if each.of == "turn"]
        lasts = min(("turn" if each.asked_anew else each.lasts for each in turns), key=_LASTS.index, default="session")
        return {"lasts": lasts, "in_prompt": any(each.place.startswith("prompt") for each in turns)}
