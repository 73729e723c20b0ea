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
    """When people used a release, or others that treat connectors alike: months such as 2026-03, or days."""

    from_: Annotated[str, Field(alias="from", pattern=_DAY)]
    """the first month or day"""
    to: Maybe[Annotated[str, Field(pattern=_DAY)]] = None
    """the month or day by which people no longer did; left out for the newest release"""


class ToolRules(Part):
    """Rules of a harness for the tools of a connector; the messages are its own, with {name} for the tool's name."""

    pattern: Maybe[Text] = None
    """a regular expression that the whole name of a tool must match"""
    ill_formed: Text = "ill-formed name {name}"
    """the message about a name that does not match"""
    reserved: Texts = ()
    """names that the harness keeps for its own tools"""
    reserved_words: Text = "{name} is a tool of the host"
    """the message about such a name"""
    schema_form: Maybe[Literal["json-schema", "record"]] = None
    """the form in which the harness reads a tool's parameters; a record is any object"""
    schema_words: Text = "{name} has no schema that is read"
    """the harness's message about any other form"""
    refused_keywords: dict[str, Text] = Field(default_factory=dict)
    """keywords that a model's interface behind the harness refuses in a schema, each with a message, with {fields} for
    the fields
    """
    needs_execute: Maybe[Text] = None
    """the message about a tool without a function execute"""
    throws: bool = False
    """whether a tool throws to tell the model of a failure"""
    twice: Maybe[Literal["replaces", "ignored"]] = None
    """what happens to a second tool of the same name"""
    twice_words: Text = "{name} is there"
    """the message about a second tool that is ignored"""
    asked: Maybe[Literal["before-initialisation", "after-initialisation"]] = None
    """when the harness asks for the tools whose calls it passes on"""
    not_asked_words: Text = "{name} was not named in time"
    """the message about a tool that was not registered by then"""


class OutputForm(Part):
    """How the harness reads the output of a hook: as a JSON object that fits `json`, or as text."""

    json_: Annotated[dict[str, Any], Field(alias="json")]
    """a JSON Schema of the objects that it reads"""
    text: Literal["taken", "ignored", "refused"]
    """what the harness does with text that is not JSON"""
    words: Text
    """the harness's message about output that it refuses"""


class SettingsRule(Part):
    """A condition on the harness's settings for loading a plugin, and its message if it is not met.

    If a rule without `at` is not met, the rules after it are not checked.
    """

    at: Maybe[Text] = None
    """the place in the settings, such as plugins.allow"""
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    """a JSON Schema of the settings; {id} is the id in the plugin's manifest"""
    words: Text
    """the harness's message about other settings"""
    kind: Maybe[Text] = None
    """a kind in a plugin's manifest: the rule applies only to plugins of this kind"""
    events: Texts = ()
    """the rule applies only to plugins that register one of these; {event} in the message is the first of them"""


class PluginLoading(Part):
    """Where the harness looks for a plugin that an installer put into a home: paths and patterns below the home."""

    found: Texts = ()
    """patterns such as .acme/plugins/*.js: the files that are loaded without being named"""
    settings: Texts = ()
    """the files in which plugins are named or switched on; those of JSON are read"""
    named: Texts = ()
    """the members of the settings that list other plugins, by path or package"""
    not_found: Text = "it is not loaded from there"
    """the harness's message about a plugin that is neither found nor named"""
    without_settings: bool = False
    """true if people also run the harness without that file of settings"""
    manifest: Maybe[Text] = None
    """the file of a plugin's package that holds its id and kind"""
    rules: Items[SettingsRule] = ()
    """what the settings must say so that a plugin is loaded"""


class Registry(Part):
    """The names and forms that a harness accepts from connectors, and its messages about those that it does not."""

    events: Texts = ()
    """every event that a handler can be registered for"""
    formerly: Texts = ()
    """events of other releases, or of a harness that loads the same plugins: connectors may support both"""
    unknown_event: Maybe[Text] = None
    """the harness's message about any other event, with {name} for its name"""
    exports: Items[Literal["function", "register", "activate"]] = ()
    """the forms of a plugin's default export: a function, or an object with such a method"""
    no_export: Maybe[Text] = None
    """the harness's message about any other form"""
    later_modes: Texts = ()
    """modes in which the harness registers a plugin once more, for other purposes than runs"""
    tool_mode: Maybe[Text] = None
    """the mode in which the harness registers a plugin if it needs only its tools"""
    no_tools: Text = "no tools"
    """the harness's message about a plugin that registers no tools in that mode"""
    again: Maybe[Literal["doubles", "replaces", "ignored"]] = None
    """what happens if a handler or service is registered a second time"""
    tools: ToolRules = ToolRules()
    outputs: dict[str, OutputForm] = Field(default_factory=dict)
    """Event to the form of a hook's output; the form is not known for an event that is left out."""
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
    """The role in which the text is sent; system includes developer."""
    place: Literal["system", "after-system", "before-prompt", "after-prompt", "prompt-begin", "prompt-end", "end"]
    """In the host's own system text; in a message of its own after that text, before or after the user's newest
    message, or at the end; or inside the user's newest message, at its beginning or end.
    """
    wrap: Wrap = TEXT
    lasts: Lasts
    """How many requests contain it: one, those of the turn, those until a compaction, or those of the session."""
    order: int = 0
    """Its rank among the texts at the same place; lower numbers come first."""
    shared: bool = False
    """true if all texts at that place form one message"""
    of: Request = "turn"
    """The kind of request that it goes into: the next of that kind."""
    asked_anew: bool = False
    """true if the host asks the connector for it before each request, so that the connector decides how long it lasts
    """


class Compaction(Part):
    """The part of a conversation that is left after a compaction."""

    keeps: Literal["nothing", "prompts", "last-turn", "last-reply"]
    """The part that is kept beside the summary: nothing, each of the user's messages, the newest turn, or only the
    newest reply.
    """
    role: Literal["user", "assistant"] = "user"
    wrap: Wrap = TEXT
    """a text with TEXT in it: what the host writes around the summary"""
    question: Maybe[Text] = None
    """The user's question that the host invents before a summary that the model says."""
    place: Literal["first", "last"] = "first"
    """Whether the summary comes before or after the part that is kept."""


class AnswerPlaces(Part):
    """How the host writes its requests to the model, as recordings of the real program show them."""

    api: Literal["/v1/messages", "/v1/responses", "/v1/chat/completions"]
    """The vendor's interface to the model that the host uses."""
    sources: dict[str, Items[Placement]]
    """Event or return value of the connector, such as SessionStart resume, to the places where the host puts its text;
    an empty list if the host discards it. A session in which any other one gave a text is not judged.
    """
    beside: dict[Literal["title", "compaction"], bool] = Field(default_factory=dict)
    """Kinds of requests that the host makes beside those of turns, each with whether it asks its connector for text
    before. Kinds that were not seen are left out.
    """
    compaction: Maybe[Compaction] = None
    """Left out if no compaction was seen."""
    opening: Maybe[Text] = None
    """The text that the host itself adds as the user at the beginning of each conversation, before a connector's text.
    """

    def in_header(self) -> Mapping[str, str | bool]:
        """The members of a recording's header that say what the host does with texts for a turn."""
        turns = [each for placements in self.sources.values() for each in placements if each.of == "turn"]
        lasts = min(("turn" if each.asked_anew else each.lasts for each in turns), key=_LASTS.index, default="session")
        return {"lasts": lasts, "in_prompt": any(each.place.startswith("prompt") for each in turns)}
