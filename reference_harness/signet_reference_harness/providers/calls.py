"""One call to a provider from first attempt to result: tried again as the policy says, never once a token is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from signet_reference_harness.errors import ProviderError
from signet_reference_harness.providers.answer import Answer
from signet_reference_harness.providers.completion import CompletionChunk, CompletionResult, StopReason
from signet_reference_harness.providers.failures import (
    CallDeferredError,
    CallError,
    CallFacts,
    Failure,
    FailureKind,
    failure_of,
)
from signet_reference_harness.providers.reasons import Api, reason_of_error
from signet_reference_harness.providers.retry import GiveUp, RetryPolicy, Timing, after
from signet_reference_harness.providers.secret import Secret

Attempt = Callable[[Answer], AsyncGenerator[CompletionChunk, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Calls the provider `name`, which speaks `api` at `base_url`, under one retry policy.

    `key_source` says where the key comes from, for when the provider refuses it.
    """

    name: str
    api: Api
    base_url: str | None = None
    key: Secret | None = None
    key_source: str | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    timing: Timing = field(default_factory=Timing)

    async def chunks(self, attempt: Attempt) -> AsyncIterator[CompletionChunk]:
        """What `attempt` shows, then a chunk with the result.

        Raises CallError or CallDeferredError, and only before the first chunk.
        """
        started = self.timing.monotonic()
        number = 1
        while True:
            answer = Answer(api=self.api)
            shown = False
            failure: Failure
            try:
                async with aclosing(attempt(answer)) as pieces:
                    async for piece in pieces:
                        shown = True
                        yield piece
            except ProviderError:
                raise
            except Exception as error:  # noqa: BLE001  # the vendors' packages pass on exceptions of HTTP libraries
                failure = failure_of(error, self.timing.now())
                if failure.kind is FailureKind.MALFORMED and not answer.begun:
                    failure = Failure(FailureKind.REFUSED, f"the request is not valid: {failure.message}")
            else:
                yield CompletionChunk("", result=self._without_key(answer.result()))
                return
            ended = self._ended(answer, failure, shown=shown)
            if ended is not None:
                yield CompletionChunk("", result=self._without_key(ended))
                return
            elapsed = self.timing.monotonic() - started
            step = after(failure, attempt=number, elapsed_s=elapsed, policy=self.policy, chance=self.timing.chance)
            if isinstance(step, GiveUp):
                raise self._error(failure, number, step.asked_s) from None
            await self.timing.sleep(step.seconds)
            number += 1

    async def result(self, attempt: Attempt) -> CompletionResult:
        """The result of `attempt`, which shows nobody anything on the way, so that it may be repeated."""

        async def unseen(answer: Answer) -> AsyncGenerator[CompletionChunk, None]:
            async with aclosing(attempt(answer)) as pieces:
                async for _ in pieces:
                    pass
            return
            yield  # makes this a generator

        async for chunk in self.chunks(unseen):
            if chunk.result is not None:
                return chunk.result
        raise AssertionError("chunks ends with a result or raises")

    def _ended(self, answer: Answer, failure: Failure, *, shown: bool) -> CompletionResult | None:
        """The result in which a failure ends the answer; None when it ends in nothing that could be kept."""
        answer.rate_limits = failure.limits or answer.rate_limits
        raw = failure.words[0] if failure.words else None
        reason = reason_of_error(self.api, failure.words, failure.message)
        if reason is not None:
            return answer.broken(reason, failure.message, raw or failure.message)
        if failure.kind is FailureKind.MALFORMED:
            return answer.broken(StopReason.MALFORMED, f"the answer cannot be read: {failure.message}", raw)
        if not shown:
            return None
        if failure.words or failure.kind not in {FailureKind.NETWORK, FailureKind.TIMEOUT}:
            return answer.broken(StopReason.ERROR, f"the provider broke off: {failure.message}", raw)
        return answer.broken(StopReason.MALFORMED, f"the stream broke: {failure.message}", raw)

    def _error(self, failure: Failure, attempts: int, asked_s: float | None) -> ProviderError:
        word = f" ({failure.words[0]})" if failure.words else ""
        if failure.status is not None:
            message = f"{self.name} answered {failure.status}{word}: {failure.message}"
        elif failure.kind is FailureKind.REFUSED:
            message = f"{self.name} cannot be asked{word}: {failure.message}"
        else:
            message = f"{self.name} did not answer{self._where}{word}: {failure.message}"
        if attempts > 1:
            message = f"{message}; tried {attempts} times"
        if asked_s is not None:
            message = f"{message}; it asks to wait {asked_s:g} s"
        message = self._hidden(message)
        raw_reason = self._hidden(failure.words[0]) if failure.words else None
        facts = CallFacts(kind=failure.kind, status=failure.status, attempts=attempts, rate_limits=failure.limits)
        if asked_s is not None and self.policy.too_long == "deferred":
            remedy = f"try again in {asked_s:g} s"
            return CallDeferredError(message, asked_s, facts, remedy=remedy, raw_reason=raw_reason)
        return CallError(message, facts, remedy=self._remedy(failure), raw_reason=raw_reason)

    @property
    def _where(self) -> str:
        return f" at {self.base_url}" if self.base_url else ""

    def _remedy(self, failure: Failure) -> str | None:
        if failure.status in {401, 403}:
            whence = f" from {self.key_source}" if self.key_source else ""
            return f"check the key{whence}, or give another by --api-key"
        if failure.status == 404:
            return f"check the model's name (--model) and that {self.name}{self._where} serves it"
        if failure.kind in {FailureKind.NETWORK, FailureKind.TIMEOUT}:
            return f"check that {self.name} can be reached{self._where}, or name another address by --base-url"
        if failure.kind is FailureKind.RATE_LIMIT:
            return "wait, then run it again"
        return None

    def _hidden(self, text: str) -> str:
        return self.key.hide_in(text) if self.key is not None else text

    def _without_key(self, result: CompletionResult) -> CompletionResult:
        """The result, its detail and raw reason without the key that a server may have echoed in an error."""
        if self.key is None:
            return result
        raw = None if result.raw_reason is None else self._hidden(result.raw_reason)
        return replace(result, detail=self._hidden(result.detail), raw_reason=raw)
