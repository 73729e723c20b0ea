"""The words of a query that count: for the full-text index, for prompts, and for names of known entities."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w']+", text))


#: Words that a full-text query leaves out.
_COMMON: Final = _words(
    """a an the is are was were be been being have has had do does did will would could should may might shall can
    to of in for on with at by from as into through during before after above below between out off over under again
    then once here there when where why how all each every both few more most other some such no nor not only own same
    so than too very just because but and or if while about up what which who whom this that these those i me my we our
    you your he him his she her it its they them their"""
)

#: Words of a prompt that say nothing about its subject.
_SMALL_TALK: Final = _words(
    """a about actually after all also am an and any are as at be been before but by can could did do does doing done
    for from get go had has have hey hi how i if in into is it its just kind like make me more my need now of ok okay
    on or our out please pretty really right say should so some something still sure thanks thank that the their them
    then there these they this to too uh um use very want was we well were what when which who why will with would
    yeah yes you your"""
)

#: Capitalised words that name nobody.
_NO_NAMES: Final = _COMMON | _words(
    """any another much many like also really quite rather still already even never always often sometimes usually
    since until onto without across along around behind near next last first second third new old good great best well
    long high low big small large little different important sure true right left yes yet must note however therefore
    thus moreover furthermore additionally meanwhile recently currently previously originally apparently specifically
    essentially generally typically particularly especially actually unfortunately fortunately certainly obviously
    basically exactly simply finally initially key facts preferences events relationships"""
)

_LONE_ACKNOWLEDGEMENTS: Final = frozenset(
    (
        "cool", "got it", "go ahead", "great", "k", "kk", "nice", "ok", "okay", "okay cool", "sounds good", "sure",
        "thanks", "thank you", "yes", "yes please", "yep",
    )
)  # fmt: skip

#: No more different words than these are asked of the index, which takes long over more.
_MOST_WORDS: Final = 1024
_MOST_NAMES: Final = 256

_INDEX_SYNTAX: Final = {**dict.fromkeys(map(ord, '":()^*?')), ord("'"): " "}
_LONGEST_ACKNOWLEDGEMENT: Final = 200
_ENVELOPE: Final = re.compile(
    r"(?:conversation info \(untrusted metadata\)|sender \(untrusted[^)]*\)|chat history since last reply)\s*:\s*",
    re.IGNORECASE,
)
_HYPHENATED: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*-[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")
_NAME: Final = re.compile(r"[A-Z][a-z]|[A-Z]{2,6}$")


def index_words(text: str) -> Counter[str]:
    """The words of `text` that the full-text index can be asked for, in order, and how often each occurs."""
    counts: Counter[str] = Counter()
    for word, times in Counter(text.translate(_INDEX_SYNTAX).lower().split()).items():
        if len(word) >= 2 and word not in _COMMON:
            counts[word] = times
    return counts


def index_query(text: str) -> str:
    """The full-text expression for `text`: up to three words must all occur, of more any; empty when none counts.

    Each word stands in it once: a real daemon repeats them, and a word sent 166,000 times stalls it for minutes.
    """
    words = index_words(text)
    quoted = [f'"{word}"' for word in list(words)[:_MOST_WORDS]]
    return (" " if words.total() <= 3 else " OR ").join(quoted)


def graph_words(text: str) -> list[str]:
    """The words of `text` that may name an entity: three or more plain letters or digits; not more than 256."""
    words = dict.fromkeys(re.sub(r"[^a-z0-9\s]", " ", text.lower()).split())
    return [word for word in words if len(word) >= 3 and word not in _COMMON][:_MOST_NAMES]


def without_envelope(text: str) -> str:
    """`text` without the blocks that a host puts around a message and calls untrusted."""
    while match := _ENVELOPE.search(text):
        end = match.end()
        with suppress(ValueError):
            end = json.JSONDecoder().raw_decode(text, end)[1]
        text = "\n\n".join(part for part in (text[: match.start()].rstrip(), text[end:].lstrip()) if part)
    return text.strip()


def subject_words(text: str) -> list[str]:
    """The words that a prompt is about: hyphenated ones first, then the others of three or more characters."""
    text = without_envelope(text)
    text = re.sub(r"<@!?\d+>", "", text)
    hyphenated = [word.lower() for word in _HYPHENATED.findall(text)] if "-" in text else []
    words = re.split(r"[^A-Za-z0-9_]+", text.lower())
    plain = [word for word in dict.fromkeys(words) if len(word) >= 3 and word not in _SMALL_TALK and not word.isdigit()]
    return list(dict.fromkeys([*hyphenated, *plain]))


def phrase(text: str) -> str:
    """`text` as entity names are compared: lower case, possessives and punctuation gone."""
    text = re.sub(r"\b([a-z0-9]+)'s\b", r"\1", text.lower().replace("\u2019", "'"))
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text).split())


def says_little(prompt: str) -> bool:
    """Whether `prompt` names no subject: an acknowledgement, or small words only."""
    if len(prompt) > _LONGEST_ACKNOWLEDGEMENT:
        return not subject_words(prompt)
    normal = phrase(prompt)
    return not normal or normal in _LONE_ACKNOWLEDGEMENTS or not subject_words(normal)


def names_in(text: str) -> list[str]:
    """The runs of capitalised words in `text` that may be names, each once."""
    names: list[str] = []
    for sentence in re.split(r"[.!?\n]+", text):
        run: list[str] = []
        for word in [*sentence.split(), ""]:
            bare = re.sub(r"""[,;:'"()\[\]{}]+$""", "", word).lstrip("""'"([]{}""")
            if word and not bare:
                continue
            if _NAME.match(bare) and bare.lower() not in _NO_NAMES:
                run.append(bare)
                continue
            name = " ".join(run)
            if len(name) >= 3:
                names.append(name)
            run = []
    return list(dict.fromkeys(names))
