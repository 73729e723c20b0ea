"""Of a long line only what may hold a secret is walked, and it comes out as if all of it had been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings, strategies as st

from signet_recording_proxy.redaction import keywords
from signet_recording_proxy.redaction.known_secrets import KnownSecrets
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS
from signet_recording_proxy.redaction.secret_names import NAMES as SECRET_NAMES, SAMPLE, names_secret
from signet_recording_proxy.redaction.secret_walk import Cleaner
from signet_recording_proxy.redaction.vendor_kinds import kinds, may_name
from tests.attacks.test_secret_kinds import TOKENS
from tests.recording_proxy.redaction.lines import line
from tests.recording_proxy.redaction.test_suspects import GLUE, SECRETS

KNOWN = "Wren-Harbor-27"
ENDINGS = [ending.decode() for ending in NAME_ENDINGS]
VENDOR_STEMS = sorted({stem for kind in kinds() for stem in kind.stems})
NAMES = st.lists(
    st.sampled_from([*ENDINGS, *VENDOR_STEMS, *"_-. 27", "has", "Token", "KEY", "new relic", "\n", "\u212a", "é"]),
    min_size=1, max_size=4,
).map("".join)  # fmt: skip
TEXTS = st.sampled_from(
    [*SECRETS, *TOKENS.values(), KNOWN, SAMPLE, "hunter2Correct", "", "x" * 600, "/home/robin/.agents"]
) | st.lists(st.sampled_from([*GLUE, "the key of a session", "code: 7", *SECRETS]), max_size=4).map("".join)
MEMBERS = (
    NAMES
    | TEXTS
    | st.sampled_from(
        [*SECRET_NAMES.name_members, "value", "text", "agentsDir", "secrets", "sessionKey", "project", "said"]
    )
)
VALUES = st.recursive(
    TEXTS | NAMES | st.sampled_from([None, True, 7, 2.5]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(MEMBERS, inner, max_size=4)
        | st.lists(st.tuples(NAMES, inner).map(list), min_size=1, max_size=3)
        | st.builds(
            lambda by, name, value: {by: name, "value": value}, st.sampled_from(SECRET_NAMES.name_members), NAMES, inner
        )
    ),
    max_leaves=12,
)


def cleaner() -> Cleaner:
    """One that knows a secret, and numbers those that it finds."""
    tokens: dict[str, str] = {}
    known = KnownSecrets()
    known.add(KNOWN, "<redacted:0>")
    return Cleaner(lambda secret: tokens.setdefault(secret, f"<redacted:{len(tokens) + 1}>"), known.replace_in, ())


@settings(max_examples=300)
@given(VALUES)
@example({"a": [{"key": "API_KEY", "value": SAMPLE}], "b": [["cookie", SAMPLE], ["x", "y"]]})
@example({"snyk_token": {"value": SAMPLE}, "refresh_token": [7, SAMPLE], "agentsDir": "/home/robin/.agents"})
@example({"said": {f"password={SAMPLE}": "by me", "x": 7}})
@example([KNOWN, "The word is said once."])
def test_what_is_not_walked_holds_no_secret(value: Any) -> None:
    """Tokens, and the order in which they are given, are those of a walk over everything."""
    looked = cleaner().line(line({"said": value}))["request"]["body"]["json"]
    assert looked == cleaner().value({"said": value})


def test_what_holds_no_secret_is_not_walked() -> None:
    """What comes back is what was given; beside a secret only what it stands in is made anew."""
    rows = [
        {"id": f"m-{number}", "said": "The key to it is the author's word.", "score": number} for number in range(9)
    ]
    body = {"rows": rows, "usage": {"input_tokens": 7}}
    assert cleaner().line(line(body))["request"]["body"]["json"] is body
    body["env"] = [{"password": SAMPLE}, rows[0]]
    clean = cleaner().line(line(body))["request"]["body"]["json"]
    assert clean["rows"] is rows
    assert clean["env"] == [{"password": "<redacted:1>"}, rows[0]]


@given(st.lists(NAMES, max_size=6, unique=True))
@example(["pass_word2", "SSHPASS", "dbPass", "compass", "has_secret", "new relic"])
def test_names_of_secrets_are_told_together_as_one_by_one(names: list[str]) -> None:
    """By our rules and by those of vendors."""
    one_by_one: list[Callable[[str], bool]] = [names_secret, may_name]
    assert keywords.secret_names_among(names) == {name for name in names if any(tells(name) for tells in one_by_one)}
