"""A search around keywords finds what a search of the whole text finds, in time proportional to the text."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from signet_recording_proxy.redaction import keyword_search, keywords
from signet_recording_proxy.redaction.keyword_search import DigestCache, KeywordSearch
from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.redaction.secret_names import SAMPLE
from signet_recording_proxy.redaction.suspects import HIDDEN
from tests.attacks.test_secret_kinds import CODED, TOKENS, WRITTEN, P
from tests.recording_proxy.redaction.lines import line
from tests.recording_proxy.redaction.test_suspects import SECRETS, TEXTS, WRAPPED, searched_for_everything

FILLERS = ("\n", "\nAnd then it was said that all is well.\n\n", " and the key to it all is the author's own word ")
UNITS = (
    *("token=", "password: ", "curl -", "://a:", "@", "eyJ", '\\"token\\":\\"', "%20", "-----BEGIN PRIVATE KEY-----\n"),
    "form-data",
)

KNOWN = sorted({P, *TOKENS.values(), *CODED.values(), *(secret for _, secret in WRITTEN.values())})


def searched(text: str) -> str:
    """What remains of a text that is searched around its keywords."""
    tokens: dict[str, str] = {}
    search = KeywordSearch(lambda secret: tokens.setdefault(secret, f"<redacted:{len(tokens) + 1}>"), HIDDEN)
    return search.clean(text)


@settings(max_examples=200)
@given(parts=TEXTS, wrapped=WRAPPED)
@example(parts=["7", "password=", "hunter2Correct"], wrapped=str)
@example(parts=["token", ":password => 'hunter2Correct'"], wrapped=str)
def test_nothing_is_missed(parts: list[str], wrapped: Callable[[str], str]) -> None:
    """Whatever stands around a secret, and however it is encoded; of two that are glued together it may find more."""
    assume(not any(one in SECRETS and another in SECRETS for one, another in pairwise(parts)))
    text = wrapped("".join(parts))
    found, whole = searched(text), searched_for_everything(text)
    assert [secret for secret in KNOWN if secret in found and secret not in whole] == []
    if found.count("<redacted:") < 2:
        assert found == whole


SCRAMBLED = "QwXzTrPlKmNbVcRdWq"
LATE = "PBJHGZrHqsLPvVJaPIeeOJYdTAYfDTfyNGMuwzEHwJSKEhPezCLyZvIxqYXzeAVOdEacmmzAHwZfkSKAG8lnfJT6mHQr6BLdWflphdw9rSylN"
LONG = LATE * 20
DISTANT: dict[str, tuple[str, str]] = {
    "the first digit of a long word comes late": (f"pgpass anytokenalchemy{LATE}", "rSylN"),
    "no digit, but beside a password's name": (f"the password is {SCRAMBLED}", SCRAMBLED),
    "no digit, but assigned to a name": (f"password: {SCRAMBLED}", SCRAMBLED),
    "no digit, but in a query": ("https://h.example/x?a=b&token=hunterCorrect", "hunterCorrect"),
    "the end of a long word": (f"aws_secret_access_key = {LONG}", "rSylN"),
    "the end of a long word of digits": (f"token: {'a' * 600}{LONG}", "rSylN"),
    "the end of a long argument": (f"curl -H x -u robin:{LONG}", "rSylN"),
    "the end of a long field": (f'form-data; name="token"\n\n{LONG * 10}', "rSylN"),
    "near the end of what another option covers": (
        f"x --db-password Round2Half {'so it is ' * 119}--db-password hunter2Correct",
        "hunter2Correct",
    ),
    "a string far behind its bracket": (f"set_token('{LATE[:100]}7')", LATE[:100]),
    "a vendor's value that begins with signs": (f"kraken = '/a+b{'q7/x+2' * 14}'", "q7/x+2"),
    "behind a vendor, another word and tabs": ("linear clé\t=\t415d71749f8f345cc31046dda619e29f", "415d71749f8f345c"),
    "behind a word that no other pattern takes": (f"cookie {SAMPLE}", SAMPLE),
    "assigned to a name in quotes by a longer sign": ("\"password\" := 'rounded7half'", "rounded7half"),
    "behind two blanks": ('robin : PSK  "round7Half"', "round7Half"),
    "behind a name with a mark": (f"recovery_phrase: {'wren harbor ' * 6}", "wren harbor"),
    "in double quotes": ('SET PASSWORD = PASSWORD("hunter");', "hunter"),
}
"""Texts with a secret that lies too far from its keyword for a short window, and the secret."""


@pytest.mark.parametrize(("text", "secret"), DISTANT.values(), ids=DISTANT)
@pytest.mark.parametrize("around", ["{}", "7 words: {}\n", "{}, as was said.\n"], ids=["alone", "digits", "words"])
def test_it_looks_as_far_as_the_patterns(text: str, secret: str, around: str) -> None:
    """A search of the whole text finds the secret, and so does this one."""
    text = around.format(text)
    assert secret not in searched_for_everything(text)
    assert secret not in searched(text)
    assert secret not in Redactor({}).text(text)


@given(
    name=st.sampled_from(["pgpass", "--token", "API_KEY", "password", "the key", "session-cookie", "my_pat2"]),
    sign=st.sampled_from([" ", ": ", "=", " = ", " is ", "` to `", "', '", '": "', " -> ", " | "]),
    before=st.integers(0, 900),
    drawn=st.randoms(use_true_random=False),
)
def test_the_first_digit_may_come_anywhere_in_a_word(name: str, sign: str, before: int, drawn: random.Random) -> None:
    """The digit may follow hundreds of letters."""
    letters = "".join(drawn.choice("bcdfghBCDFGH") for _ in range(before))
    text = f"{name}{sign}{letters}7Zq2wX4r, and so on"
    assert searched(text) == searched_for_everything(text)


@pytest.mark.parametrize("filler", FILLERS, ids=["lines", "paragraphs", "prose"])
def test_a_secret_far_inside_is_found(filler: str) -> None:
    """As it is in a text that is only this long."""
    texts = {way: searched(f"{filler * 40}\n{text}\n{filler * 40}") for way, (text, _) in WRITTEN.items()}
    assert [way for way, (_, secret) in WRITTEN.items() if secret in texts[way]] == []


def test_tokens_far_inside_are_found() -> None:
    """All kinds at once, in a text of several pieces."""
    drawn = random.Random(1)
    filler = "The invoice is rounded half to even, said the author.\n\n" * 60
    everything = [*TOKENS.values(), *CODED.values()]
    drawn.shuffle(everything)
    clean = searched("".join(f"{filler}{secret}\n\n" for secret in everything))
    assert [secret for secret in everything if secret in clean] == []


@settings(max_examples=200)
@given(lists=st.lists(TEXTS, max_size=8), wrapped=WRAPPED)
@example(lists=[["é", "token", '": "'], ["a1b2c3d4e5f6", '"'], ["password", "=", "hunter2Correct"]], wrapped=str)
@example(lists=[['"token": ""'], ['"token": "hunter2Correct']], wrapped=str)
def test_what_one_look_at_all_spares_holds_no_secret(lists: list[list[str]], wrapped: Callable[[str], str]) -> None:
    """Short texts are looked at together, and most are not searched one by one."""
    texts = list(dict.fromkeys(wrapped("".join(parts)) for parts in lists))
    spared = set(texts) - set(keyword_search.texts_to_search(texts))
    assert spared == {text for text in texts if text in spared and searched_for_everything(text) == text}


def test_texts_without_a_secret_are_spared() -> None:
    """What connectors mostly send is not searched twice, but for what stands right beside a secret."""
    texts = ["claude-code", "Round half to even.", "0.145.7", "tokens of the author", "/home/robin/shop"]
    beside = "Whatever is said here, it is all that stands between them and it. " * 4
    password = "password=hunter2Correct"
    assert keyword_search.texts_to_search([*texts, beside, password]) == [beside, password]


@pytest.mark.parametrize("name", ["pass_word", "pass-phrase", "pass_code2", "pass_word_hash"])
def test_marks_inside_the_last_word_hide_no_name(name: str) -> None:
    """As they hide none of a member's."""
    assert "correct horse" not in searched(f'{FILLERS[0] * 40}{{"{name}": "correct horse battery"}}')


def test_digits_near_an_earlier_name_hide_no_value_behind_a_later_one() -> None:
    """Where no digit is near, no value drawn at random is."""
    assert SAMPLE not in searched(f"The token is good for 7 days, and the password is {SAMPLE} from now on.")


@pytest.mark.parametrize("empty", ['"token":""', "token: ''", '\\"token\\":\\"\\"', "token := ``"])
def test_an_empty_value_hides_nothing_behind_it(empty: str) -> None:
    """The search goes on where a quote is closed at once."""
    assert "hunter2Correct" not in searched(f'{empty}, "password": "hunter2Correct"')


def test_a_text_that_was_clean_is_searched_for_what_is_learned_later() -> None:
    """That it held no secret is remembered; which secrets are known by then is not part of that."""
    redactor, said = Redactor({}), f"{FILLERS[1] * 400} the word is Wren-Harbor-27 again"
    headers = [("authorization", "Bearer Wren-Harbor-27")]
    assert b"Wren-Harbor-27" in redactor.exchange(line({"said": said}))
    assert b"Wren-Harbor-27" not in redactor.exchange(line({"said": said}, headers=headers))
    assert b"Wren-Harbor-27" not in redactor.exchange(line({"said": said}))


def test_what_was_clean_is_forgotten_in_the_end() -> None:
    """Only what is looked for again stays."""
    remembered = DigestCache(2)
    for key in (b"a", b"b", b"c"):
        remembered.add(key)
    assert b"a" in remembered
    remembered.add(b"d")
    assert (b"b" in remembered, b"a" in remembered) == (False, True)


@given(st.lists(st.sampled_from(["x" * 300, "\n", "\n\n", "\n  ", "key: |", "form-data", " "]), max_size=40))
def test_pieces_are_the_whole(parts: list[str]) -> None:
    """Nothing is lost between them, and none begins with an indented line."""
    text = "".join(parts)
    piece = keyword_search._PIECE
    keyword_search._PIECE = 1000
    try:
        pieces = list(keyword_search._pieces(text))
    finally:
        keyword_search._PIECE = piece
    assert "".join(pieces) == text
    assert not any(part[:1].isspace() and not part.startswith("\n") for part in pieces[1:])


@pytest.mark.parametrize("unit", UNITS)
def test_the_search_is_linear(unit: str) -> None:
    """Windows do not overlap, so a text that is twice as long has at most about twice as much to be searched."""
    windows = []
    for count in (4000, 8000):
        text = unit * count
        hits = keywords.Hits(text)
        sizes = [
            sum(end - start for start, end in keyword_search._merge(of(text, hits), len(text)))
            for of in (
                keyword_search._nested,
                keyword_search._parameters,
                keyword_search._forms,
                keyword_search._members,
                keyword_search._assignments,
                keyword_search._markup,
                keyword_search._commands,
            )
        ]
        windows.append(sum(sizes))
        assert max(sizes) <= len(text)
    assert windows[1] <= 2 * windows[0] + 100_000
