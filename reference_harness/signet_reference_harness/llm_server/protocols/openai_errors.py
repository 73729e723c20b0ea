"""What both interfaces of OpenAI share: error bodies and headers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from signet_reference_harness.llm_server.script import Failure, RateLimit

_ERRORS: Final = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
_TOO_LONG: Final = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 212345 tokens."
)


def failure(error: Failure) -> tuple[int, dict[str, Any]]:
    """The status and body of an error answer."""
    too_long = error.kind == "context_limit"
    status = 400 if too_long else error.status
    kind, code = _ERRORS.get(status, ("invalid_request_error" if status < 500 else "server_error", None))
    told = {
        "message": error.message or (_TOO_LONG if too_long else "scripted"),
        "type": error.type or kind,
        "param": "messages" if too_long else None,
        "code": error.code or ("context_length_exceeded" if too_long else code),
    }
    return status, {"error": told}


def headers(number: int, limits: tuple[RateLimit, ...], now: datetime) -> dict[str, str]:
    """The headers of every answer."""
    del now
    told = {"x-request-id": f"req_{number:06d}", "openai-processing-ms": "1"}
    for limit in limits:
        told[f"x-ratelimit-limit-{limit.scope}"] = str(limit.limit)
        told[f"x-ratelimit-remaining-{limit.scope}"] = str(limit.remaining)
        told[f"x-ratelimit-reset-{limit.scope}"] = _duration(limit.reset_s)
    return told


def _duration(seconds: float) -> str:
    """A length of time as OpenAI writes it: 6m0s, 1.5s, 20ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest:g}s"
