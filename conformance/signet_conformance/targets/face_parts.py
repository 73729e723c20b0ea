"""Two parts of a face: the registry of the host, and the way of a hook's answer to the model.

The registry is what the host knows and refuses, in which words, and when people ran it. The way of an answer is where
it is put in the host's requests, in whose role, for how long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from signet_conformance.files.documents import Items, Maybe, Part, Text

_DAY = r"^20[0-9]{2}-(0[1-9]|1[0-2])(-[0-3][0-9])?$"
Texts = Annotated[Items[str], Field(description="a list of texts")]


class Current(Part):
    """When people ran a release, or others that do the same to connectors: months such as 2026-03, or days."""

    from_: Annotated[str, Field(alias="from", pattern=_DAY)]
    """the first month or day"""
    to: Maybe[Annotated[str, Field(pattern=_DAY)]] = None
    """the month or day on which it was no longer so; left out of the newest"""


class ToolRules(Part):
    """Rules of a harness for the tools of a connector; the words are its own, with {name} for the tool's name."""

    pattern: Maybe[Text] = None
    """a regular expression that the whole name of a tool matches"""
    ill_formed: Text = "ill-formed name {name}"
    """the words for a name that does not"""
    reserved: Texts = ()
    """names that the harness keeps for its own tools"""
    reserved_words: Text = "{name} is a tool of the host"
    """the words for such a name"""
    schema_form: Maybe[Literal["json-schema", "record"]] = None
    """what the harness reads as a tool's parameters; a record is any object"""
    schema_words: Text = "{name} has no schema that is read"
    """the words for another one"""
    refused_keywords: dict[str, Text] = Field(default_factory=dict)
    """keywords that an interface of models behind the harness refuses in a schema, and what to say, with {fields}"""
    needs_execute: Maybe[Text] = None
    """the words for a tool without a function execute"""
    twice: Maybe[Literal["replaces", "ignored"]] = None
    """what becomes of a second tool of the same name"""
    twice_words: Text = "{name} is there"
    """the words for a second one that is ignored"""
    asked: Maybe[Literal["before-initialisation", "after-initialisation"]] = None
    """when the harness asks for the tools whose calls it passes on"""
    not_asked_words: Text = "{name} was not named in time"
    """the words for one that it was not told of then"""


class OutputForm(Part):
    """How the harness reads the output of a hook: as a JSON object that fits `json`, or as text."""

    json_: Annotated[dict[str, Any], Field(alias="json")]
    """a JSON Schema of the objects that it reads"""
    text: Literal["taken", "ignored", "refused"]
    """what becomes of text that is not JSON"""
    words: Text
    """the harness's words for output that it refuses"""


class SettingsRule(Part):
    """What the harness's settings have to say for it to load a plugin, and its words where they do not.

    After a rule without `at`, the others are looked at only where it is kept.
    """

    at: Maybe[Text] = None
    """the place in the settings, such as plugins.allow"""
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    """a JSON Schema of the settings; {id} is the id in the plugin's manifest"""
    words: Text
    """the harness's words for other settings"""
    kind: Maybe[Text] = None
    """the kind in the manifest of plugins for which alone the rule stands"""


class PluginLoading(Part):
    """Where the harness looks for a plugin that an installer put into a home: paths and patterns below the home."""

    found: Texts = ()
    """patterns such as .acme/plugins/*.js: the files that are loaded without being named"""
    settings: Texts = ()
    """the files in which plugins are named or switched on; those of JSON are read"""
    named: Texts = ()
    """the members of the settings that list other plugins, by path or package"""
    not_found: Text = "it is not loaded from there"
    """the words for a plugin that is neither found nor named"""
    without_settings: bool = False
    """true where people run the harness without that file of settings, too"""
    manifest: Maybe[Text] = None
    """the file of a plugin's package that holds its id and kind"""
    rules: Items[SettingsRule] = ()
    """what the settings have to say for a plugin to be loaded"""


class Registry(Part):
    """The names and forms that a harness takes of connectors, and its words for those that it does not."""

    events: Texts = ()
    """every event that a handler can be registered for"""
    formerly: Texts = ()
    """events of other releases, or of a harness that takes the same plugins: connectors may be ready for both"""
    unknown_event: Maybe[Text] = None
    """the harness's words for another one, with {name} for it"""
    exports: Items[Literal["function", "register", "activate"]] = ()
    """the forms of a plugin's default export: a function, or an object with such a method"""
    no_export: Maybe[Text] = None
    """the words for another one"""
    later_modes: Texts = ()
    """modes in which a plugin is registered once more, for something other than runs"""
    tool_mode: Maybe[Text] = None
    """the mode in which a plugin is registered where only its tools are needed"""
    no_tools: Text = "no tools"
    """the words for a plugin that registers none in it"""
    again: Maybe[Literal["doubles", "replaces", "ignored"]] = None
    """what a handler or service that is registered a second time does beside the first"""
    tools: ToolRules = ToolRules()
    outputs: dict[str, OutputForm] = Field(default_factory=dict)
    """Event to the form of a hook's output; of an event that is left out nothing is known."""
    loading: Maybe[PluginLoading] = None
    """where the harness looks for what a plugin's installer wrote"""


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
    opening: Maybe[Text] = None
    """What the host itself says as the user at the beginning of each conversation, before what a connector gives there.
    """

    def in_header(self) -> Mapping[str, str | bool]:
        """The members of a recording's header that say what the host does with texts for a turn."""
        turns = [each for placements in self.sources.values() for each in placements if each.of == "turn"]
        lasts = min(("turn" if each.asked_anew else each.lasts for each in turns), key=_LASTS.index, default="session")
        return {"lasts": lasts, "in_prompt": any(each.place.startswith("prompt") for each in turns)}
