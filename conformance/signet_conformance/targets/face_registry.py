"""The registry of a host: names and forms that it knows, what it refuses in which words, and when people ran it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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
