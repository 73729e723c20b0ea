"""A request that is encoded while the daemon works gives the same line as one that waits for its answer."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import SHAPED, line

SECRET = "a-session-9f8e7d6c5b4a"
FRAME = ("kind", "seq", "conn", "t0", "t1")


def completed(redactor: Redactor, exchange: dict[str, Any]) -> bytes | None:
    """The line of an exchange whose request is encoded before its answer is known."""
    ready = redactor.request(exchange["request"])
    if ready is None:
        return None
    rest = {name: member for name, member in exchange.items() if name not in (*FRAME, "request")}
    return redactor.completed({name: exchange[name] for name in FRAME}, ready, rest)


def answered(body: Any, *headers: tuple[str, str]) -> dict[str, Any]:
    """The `response` member of a line."""
    return {"status": 200, "headers": list(headers), "body": {"json": body}}


@pytest.mark.parametrize("error", [None, {"kind": "client_closed", "t": 1.0}])
def test_the_line_is_the_same(error: dict[str, Any] | None) -> None:
    """Whatever follows the answer; a header that holds a secret by its name calls for no closer look."""
    exchange = line(
        {"note": "it is none"},
        headers=[("authorization", "Bearer 0123456789abcdef")],
        response=answered({"echo": "it is none"}, ("content-type", "application/json")),
    )
    if error is not None:
        exchange["error"] = error
    assert completed(Redactor({}), deepcopy(exchange)) == Redactor({}).exchange(exchange)


@pytest.mark.parametrize("secret", [*SHAPED, "half an emoji: \ud83d"])
def test_what_has_to_be_looked_at_closely_is_not_encoded_ahead(secret: str) -> None:
    """Whichever side holds it."""
    asked = line({"note": f"it is {secret}"}, response=answered({}))
    heard = line({}, response=answered({"echo": f"it is {secret}"}))
    assert completed(Redactor({}), asked) is completed(Redactor({}), heard) is None


def test_a_secret_that_the_answer_gives_away_calls_for_another_look_at_the_request() -> None:
    """The request may hold it, and was encoded when nobody knew it."""
    exchange = line({"note": f"I am {SECRET}"}, response=answered({}, ("x-session-token", SECRET)))
    redactor = Redactor({})
    assert completed(redactor, deepcopy(exchange)) is None
    assert SECRET not in redactor.exchange(exchange).decode()


def test_a_secret_that_another_exchange_gives_away_meanwhile_calls_for_it_too() -> None:
    """Whose answer it stands in does not matter."""
    exchange, redactor = line({"note": f"I am {SECRET}"}), Redactor({})
    ready = redactor.request(deepcopy(exchange)["request"])
    assert ready is not None
    redactor.exchange(line(headers=[("authorization", f"Bearer {SECRET}")]))
    assert redactor.completed({name: exchange[name] for name in FRAME}, ready, {"response": None}) is None
