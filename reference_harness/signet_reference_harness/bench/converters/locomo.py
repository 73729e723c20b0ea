"""LoCoMo (Maharana et al., ACL 2024): a database a conversation, a fact a turn, a question a query.

`[{"sample_id", "conversation": {"session_1_date_time", "session_1": [{"speaker", "dia_id", "text", "blip_caption"}]},
"qa": [{"question", "answer", "adversarial_answer", "evidence": ["D1:3"], "category"}]}]`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from signet_reference_harness.bench.converters.source import Source, Value, moment, name_of, plain

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN: Final = re.compile(r"D:?(\d+):0*(\d+)")
SESSION: Final = re.compile(r"session_(\d+)")


def convert(source: Source, *, captions: bool) -> Iterator[dict[str, Any]]:
    """The lines of the suite. With `captions` a turn holds what its picture shows. Raises DocumentError."""
    mended, lost, without = 0, 0, 0
    scenarios: list[dict[str, Any]] = []
    for number, sample in enumerate(source.root.items(), 1):
        name = name_of(str(sample.optional("sample_id") or f"conversation-{number}"))
        scenarios.append({"kind": "scenario", "id": name})
        turns = list(_turns(sample.member("conversation"), captions=captions))
        scenarios += turns
        known = {turn["id"] for turn in turns}
        for order, question in enumerate(sample.member("qa").items(), 1):
            named = [str(each) for each in question.optional("evidence") or []]
            evidence = list(dict.fromkeys(f"D{a}:{b}" for each in named for a, b in TURN.findall(each)))
            kept = [each for each in evidence if each in known]
            mended += sum(each not in known for each in named)
            lost += len(evidence) - len(kept)
            without += not kept
            category = question.optional("category")
            answer = question.optional("answer")
            scenarios.append(
                plain(
                    {
                        "kind": "query",
                        "id": f"q{order}",
                        "text": question.member("question").text(),
                        "evidence": kept,
                        "category": CATEGORIES.get(category, str(category)),
                        "answer": None if answer is None or category == 5 else str(answer),
                    }
                )
            )
    yield {
        "kind": "suite",
        "format": "signet-bench-suite/1",
        "name": "locomo-captions" if captions else "locomo",
        "licence": "CC-BY-NC-4.0",
        "source": f"LoCoMo, Maharana et al., ACL 2024; sha256 of the file: {source.sha256}",
        "known_defects": [
            f"{mended} entries of evidence name no turn as they stand; they were split or mended where that was plain",
            f"{lost} of the turns named then do not exist and are left out; {without} questions have no evidence",
            "the evidence of category 5 is that of the question it was twisted from: it answers nothing",
        ],
    }
    yield from scenarios


def _turns(conversation: Value, *, captions: bool) -> Iterator[dict[str, Any]]:
    members = conversation.demand(dict)
    numbers = sorted(int(session[1]) for name in members if (session := SESSION.fullmatch(name)))
    for number in numbers:
        said = str(members.get(f"session_{number}_date_time", ""))
        at = moment(said, "%I:%M %p on %d %B, %Y", "%d %B, %Y")
        for turn in conversation.member(f"session_{number}").items():
            text = f"{turn.member('speaker').text()}: {turn.member('text').text()}"
            caption = turn.optional("blip_caption")
            shown = f" [shows a picture: {caption}]" if captions and caption else ""
            yield plain({"kind": "fact", "id": turn.member("dia_id").text(), "text": text + shown, "at": at})
