"""The registry of a host: names and forms that it knows, what it refuses in which words, and when people ran it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from signet_conformance.files.documents import Items, Maybe, Part, Text

_DAY = r"^20[0-9]{2}-(0[1-9]|1[0-2])(-[0-3][0-9])?$"
Texts = Annotated[Items[str], Field(description="a list of texts")]


class Current(Part):
    """When people ran a release, or others that do the same to connectors: months such as 2026-03, or days."""

    from_: Annotated[str, Field(alias="from", pattern=_DAY, description="the first month or day")]
    to: Annotated[
        Maybe[Annotated[str, Field(pattern=_DAY)]],
        Field(description="the month or day on which it was no longer so; left out of the newest"),
    ] = None


class ToolRules(Part):
    """Rules of a harness for the tools of a connector; the words are its own, with {name} for the tool's name."""

    pattern: Annotated[Maybe[Text], Field(description="a regular expression that the whole name of a tool matches")] = (
        None
    )
    ill_formed: Annotated[Text, Field(description="the words for a name that does not")] = "ill-formed name {name}"
    reserved: Annotated[Texts, Field(description="names that the harness keeps for its own tools")] = ()
    reserved_words: Annotated[Text, Field(description="the words for such a name")] = "{name} is a tool of the host"
    schema_form: Annotated[
        Maybe[Literal["json-schema", "record"]],
        Field(description="what the harness reads as a tool's parameters; a record is any object"),
    ] = None
    schema_words: Annotated[Text, Field(description="the words for another one")] = "{name} has no schema that is read"
    needs_execute: Annotated[Maybe[Text], Field(description="the words for a tool without a function execute")] = None
    twice: Annotated[
        Maybe[Literal["replaces", "ignored"]], Field(description="what becomes of a second tool of the same name")
    ] = None
    twice_words: Annotated[Text, Field(description="the words for a second one that is ignored")] = "{name} is there"
    asked: Annotated[
        Maybe[Literal["before-initialisation", "after-initialisation"]],
        Field(description="when the harness asks for the tools whose calls it passes on"),
    ] = None
    not_asked_words: Annotated[Text, Field(description="the words for one that it was not told of then")] = (
        "{name} was not named in time"
    )


class OutputForm(Part):
    """How the harness reads the output of a hook: as a JSON object that fits `json`, or as text."""

    json_: Annotated[dict[str, Any], Field(alias="json", description="a JSON Schema of the objects that it reads")]
    text: Annotated[Literal["taken", "ignored", "refused"], Field(description="what becomes of text that is not JSON")]
    words: Annotated[Text, Field(description="the harness's words for output that it refuses")]


class Registry(Part):
    """The names and forms that a harness takes of connectors, and its words for those that it does not."""

    events: Annotated[Texts, Field(description="every event that a handler can be registered for")] = ()
    formerly: Annotated[
        Texts,
        Field(
            description="events of other releases, or of a harness that takes the same plugins: connectors may be "
            "ready for both"
        ),
    ] = ()
    unknown_event: Annotated[
        Maybe[Text], Field(description="the harness's words for another one, with {name} for it")
    ] = None
    exports: Annotated[
        Items[Literal["function", "register", "activate"]],
        Field(description="the forms of a plugin's default export: a function, or an object with such a method"),
    ] = ()
    no_export: Annotated[Maybe[Text], Field(description="the words for another one")] = None
    later_modes: Annotated[
        Texts, Field(description="modes in which a plugin is registered once more, for something other than runs")
    ] = ()
    tool_mode: Annotated[
        Maybe[Text], Field(description="the mode in which a plugin is registered where only its tools are needed")
    ] = None
    no_tools: Annotated[Text, Field(description="the words for a plugin that registers none in it")] = "no tools"
    again: Annotated[
        Maybe[Literal["doubles", "replaces", "ignored"]],
        Field(description="what a handler or service that is registered a second time does beside the first"),
    ] = None
    tools: ToolRules = ToolRules()
    outputs: Annotated[
        dict[str, OutputForm],
        Field(description="Event to the form of a hook's output; of an event that is left out nothing is known."),
    ] = Field(default_factory=dict)
