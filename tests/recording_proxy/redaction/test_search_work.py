"""The search for passwords on command lines does work in proportion to the text: counted, not timed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from cProfile import Profile
from re import _constants, _parser  # nothing public parses an expression
from typing import Any

import pytest

from signet_recording_proxy.redaction import arguments, keyword_search, keywords
from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.suspects import HIDDEN

OPTIONS = " -p x1 -u a:b2c3 -P abcd1 --password-stdin | auth= "
# Of the programs that one pattern names, one: the others are branches of the same alternation.
STEMS = sorted({command.stems[0] for command in arguments.TABLE})
TEXTS = [
    *(f"{stem}{OPTIONS}" for stem in STEMS),
    *(json.dumps({"command": f"{stem} -p 'x1' -u", "password": ""}) for stem in STEMS),
]
COUNT = 40


def _calls(text: str) -> int:
    """How many functions a search calls, of ours and of the regular expressions."""
    search = KeywordSearch(lambda secret: f"<redacted:{len(secret)}>", HIDDEN)
    keyword_search.forget()
    profile = Profile()
    profile.runcall(search.clean, text)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("unit", TEXTS)
def test_each_part_of_a_text_takes_as_many_calls_as_the_one_before(unit: str) -> None:
    """In lines and in one line, with options that may belong to any of the programs before them."""
    for between in ("\n", " "):
        _calls(between.join([unit] * 2))  # what is done only once
        first, second, third = (_calls(between.join([unit] * count)) for count in (COUNT, 2 * COUNT, 3 * COUNT))
        assert third - second <= second - first + 100


@pytest.mark.parametrize("unit", TEXTS)
def test_no_character_is_looked_at_more_than_a_few_times(unit: str) -> None:
    """The windows around commands, which the expressions get to see, do not pile up."""
    text = unit * COUNT
    windows = list(keyword_search._commands(text, keywords.Hits(text)))
    assert sum(end - start for start, end in windows) <= 4 * len(text) * _programs_in(unit) + 2000
    merged = keyword_search._merge(windows, len(text))
    assert sum(end - start for start, end in merged) <= len(text)


def _programs_in(unit: str) -> int:
    return sum(stem in unit.lower() for stem in arguments.STEMS)


def _repetitions(pattern: Any, *, possessive: bool = False) -> Iterator[bool]:
    """Of each repetition, whether it ends after so many times or gives nothing back."""
    for operation, argument in pattern:
        if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            _, most, repeated = argument
            gives_back = operation is not _constants.POSSESSIVE_REPEAT and not possessive
            yield most is not _constants.MAXREPEAT or not gives_back
            yield from _repetitions(repeated, possessive=not gives_back)
        elif operation is _constants.BRANCH:
            for branch in argument[1]:
                yield from _repetitions(branch)
        elif operation is _constants.GROUPREF_EXISTS:
            for branch in filter(None, argument[1:]):
                yield from _repetitions(branch)
        elif operation is _constants.SUBPATTERN:
            yield from _repetitions(argument[-1])
        elif operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _repetitions(argument[1])
        elif operation is _constants.ATOMIC_GROUP:
            yield from _repetitions(argument, possessive=True)


@pytest.mark.parametrize("command", arguments.TABLE, ids=lambda command: command.stems[0])
def test_every_repetition_is_bounded_or_gives_nothing_back(command: Any) -> None:
    """So what fails late has no other way to be tried, of which there would be more in longer text."""
    for expression in filter(None, (command.expression, command.preceded_by)):
        assert all(_repetitions(_parser.parse(expression))), expression
