"""Models and the schemas that follow from them: whatever a document holds, both say the same, and nothing crashes."""

from __future__ import annotations

import copy
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from signet_conformance.errors import UsageError
from signet_conformance.files.documents import demand
from signet_conformance.files.json_schemas import schema_of

from .test_example_documents import MODELS, SCHEMAS

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", " ", "x", "\ud83d", "\x1b[31m", "SIG-END-001", "2026-02-30", "/a", "prompt", "FAIL"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["", "step", "path", "\ud83d"]), inner),
    max_leaves=4,
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value below a document."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, child in children:
        yield (*way, part)
        yield from places(child, (*way, part))


@pytest.mark.parametrize("group", MODELS)
@settings(max_examples=60)
@given(data=st.data())
def test_what_a_schema_refuses_its_model_refuses(group: str, data: st.DataObject) -> None:
    """A document that is changed at one place is read where the schema admits it, or is one error with a remedy.

    A model may refuse more than a schema can say, such as a requirement that the catalogue does not have.
    """
    model = pkgutil.resolve_name(MODELS[group])
    valid = sorted((SCHEMAS / "examples" / group).glob("valid-*.json"))
    document = copy.deepcopy(json.loads(data.draw(st.sampled_from(valid)).read_bytes())["document"])
    *way, last = data.draw(st.sampled_from([*places(document)] or [("x",)]))
    holder = document
    for part in way:
        holder = holder[part]
    if data.draw(st.booleans()) or not isinstance(holder, dict):
        holder[last] = data.draw(VALUES)
    else:
        holder.pop(last, None)
    complaint = None
    try:
        demand(model, document, "a.json")
    except UsageError as error:
        complaint = error
    encoded = json.dumps(document)
    if complaint is not None:
        assert complaint.remedy
        assert len(str(complaint)) < 1200
    elif not any(odd in encoded for odd in ("NaN", "Infinity", "\\ud83d")):
        # The schema's validator reads no half of an emoji, and JSON has no such numbers.
        assert jsonschema_rs.validator_for(schema_of(model, model.schema_file)).is_valid(json.loads(encoded))
