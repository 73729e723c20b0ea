"""Suites converted from published data sets, by small files in their formats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.bench.data_sets import convert
from signet_reference_harness.bench.suite import Suite, SuiteFact, SuiteQuery, parse_suite
from signet_reference_harness.documents import DocumentError

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_2_date_time": "2:05 pm on 9 May, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I moved.", "blip_caption": "a red house"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello!"}],
        },
        "qa": [
            {"question": "Who moved?", "answer": "Bo", "evidence": ["D1:1; D2:1"], "category": 4},
            {"question": "When?", "answer": 2023, "evidence": ["D2:01", "D9:9"], "category": 2},
            {"question": "Why?", "adversarial_answer": "work", "evidence": ["D"], "category": 5},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "What do I like?",
        "answer": "Pears",
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/05/20 (Sat) 15:08", "2023/05/21 (Sun) 00:51"],
        "haystack_sessions": [
            [{"role": "user", "content": "I like plums."}],
            [{"role": "user", "content": "Pears now.", "has_answer": True}, {"role": "assistant", "content": "Fine."}],
        ],
        "answer_session_ids": ["b"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "multi-session",
        "question": "What do I hate?",
        "answer": "It was not said.",
        "haystack_sessions": [[{"role": "user", "content": "I like plums."}]],
    },
]
MEMORYAGENTBENCH = {
    "context": "Here is a list of facts:\n0. The flag of Nol is green.\n1. Nol lies in the north.\n",
    "questions": ["Which colour has the flag?", "Who rules?"],
    "answers": [["green"], ["Ada"]],
    "metadata": {"source": "facts_sh", "question_types": ["single", "none"]},
}
BEAM = {
    "conversation_id": "7",
    "chat": [
        {
            "batch_number": 1,
            "turns": [
                [
                    {
                        "role": "user",
                        "id": 0,
                        "time_anchor": "March-15-2024",
                        "content": "My sprint ends today. ->-> 1,1",
                    },
                    {"role": "assistant", "id": 1, "content": "Well done."},
                ]
            ],
        }
    ],
    "probing_questions": str(
        {
            "abstention": [{"question": "Who am I?", "ideal_response": "It was not said."}],
            "knowledge_update": [{"question": "When?", "answer": "Today", "source_chat_ids": {"original_info": [0]}}],
        }
    ),
}


def suite(name: str, value: Any, folder: Path) -> Suite:
    """The suite converted from a file that holds `value`."""
    file = folder / "source.json"
    file.write_text(json.dumps(value), "utf-8")
    return parse_suite(convert(name, file), "made")


def test_locomo_turns_are_facts_in_the_order_of_their_sessions(tmp_path: Path) -> None:
    """A turn keeps id, speaker and time, and the caption of its picture if that is requested."""
    plain = [step for step in suite("locomo", LOCOMO, tmp_path).steps() if isinstance(step, SuiteFact)]
    assert [(fact.id, fact.text, fact.at) for fact in plain] == [
        ("D1:1", "Ann: Hello!", "2023-05-08T13:56:00Z"),
        ("D2:1", "Bo: I moved.", "2023-05-09T14:05:00Z"),
    ]
    captions = suite("locomo-captions", LOCOMO, tmp_path).steps()[1]
    assert isinstance(captions, SuiteFact)
    assert captions.text == "Bo: I moved. [shows a picture: a red house]"


def test_locomo_evidence_is_mended_where_that_is_plain(tmp_path: Path) -> None:
    """Entries of several turns, or with an extra zero, are read; turns that do not exist are left out and counted."""
    made = suite("locomo", LOCOMO, tmp_path)
    queries = [step for step in made.steps() if isinstance(step, SuiteQuery)]
    assert [query.evidence for query in queries] == [("D1:1", "D2:1"), ("D2:1",), ()]
    assert [query.answer for query in queries] == ["Bo", "2023", None]
    assert made.head.known_defects[1].startswith("1 of the turns named then do not exist")


def test_longmemeval_questions_have_a_history_of_their_own(tmp_path: Path) -> None:
    """Marked turns are evidence; a question of abstention has none."""
    made = suite("longmemeval", LONGMEMEVAL, tmp_path)
    assert len(made.databases) == 2
    first, second = (step for step in made.steps() if isinstance(step, SuiteQuery))
    assert (first.evidence, first.category) == (("s2:1",), "multi-session")
    assert (second.evidence, second.category) == ((), "abstention")


def test_memoryagentbench_facts_that_hold_an_answer_are_evidence(tmp_path: Path) -> None:
    """A numbered list is split into its facts, without the numbers."""
    made = suite("memoryagentbench", [MEMORYAGENTBENCH], tmp_path)
    facts = [step.text for step in made.steps() if isinstance(step, SuiteFact)]
    assert facts == ["The flag of Nol is green.", "Nol lies in the north."]
    assert [step.evidence for step in made.steps() if isinstance(step, SuiteQuery)] == [("p1",), ()]


def test_beam_is_read_as_a_folder_and_as_records(tmp_path: Path) -> None:
    """Both layouts give the same steps; the generator's mark is removed."""
    records = suite("beam", [BEAM], tmp_path)
    folder = tmp_path / "chats" / "7"
    (folder / "probing_questions").mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(BEAM["chat"]), "utf-8")
    probing = json.dumps(eval(str(BEAM["probing_questions"])))  # noqa: S307 - written above
    (folder / "probing_questions" / "probing_questions.json").write_text(probing, "utf-8")
    assert parse_suite(convert("beam", tmp_path / "chats"), "made").steps() == records.steps()
    fact, _, abstention, update = records.steps()
    assert isinstance(fact, SuiteFact)
    assert fact.text == "user: My sprint ends today."
    assert isinstance(abstention, SuiteQuery)
    assert isinstance(update, SuiteQuery)
    assert (abstention.evidence, update.evidence) == ((), ("m0",))


@pytest.mark.parametrize("name", ["locomo", "longmemeval", "memoryagentbench", "beam"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b'[{"context": 1}]', b'{"a": 1}', b"9" * 5000])
def test_another_file_is_refused_by_name_and_pointer(name: str, content: bytes, tmp_path: Path) -> None:
    """The error says where the file differs from a published one."""
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(DocumentError) as raised:
        parse_suite(convert(name, file), "made")
    assert "other.json" in raised.value.message or "made" in raised.value.message
    assert raised.value.remedy


@pytest.mark.skipif("SIGNET_LOCOMO" not in os.environ, reason="SIGNET_LOCOMO names no locomo10.json")
def test_the_published_locomo_is_converted_whole() -> None:
    """Ten conversations, every turn, and every question that names a turn."""
    counts = parse_suite(convert("locomo", Path(os.environ["SIGNET_LOCOMO"])), "made").counts()
    assert counts["databases"] == 10
    assert counts["facts"] == 5882
    assert counts["questions"] == 1982
