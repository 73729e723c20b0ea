"""The skills of a project and of an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_reference_harness.chat.skills import LONGEST, skills


def write(folder: Path, name: str, text: str) -> Path:
    """The SKILL.md of a skill, written."""
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_a_projects_skill_takes_the_place_of_the_agents_own(tmp_path: Path) -> None:
    """Both places are listed by name; the description is that of the head, or the first words."""
    workspace, project = tmp_path / "agent", tmp_path / "acme"
    write(workspace / "skills", "review", "The agent's.")
    write(workspace / "skills", "deploy", "# Deploy\n\nCarefully.")
    write(
        project / ".agents/skills", "review", "---\nname: review\ndescription: >\n  Look at\n  a change\n---\nLook.\n"
    )
    told = [(each.name, each.description, each.text, str(each.origin)) for each in skills(workspace, project)]
    assert told == [
        ("deploy", "Deploy", "# Deploy\n\nCarefully.", "workspace"),
        ("review", "Look at a change", "Look.", "project"),
    ]


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST + 1), "---\n---\n"])
def test_what_is_no_skill_is_left_out(tmp_path: Path, text: str) -> None:
    """Nothing, and more than a model should be given."""
    write(tmp_path / ".agents/skills", "review", text)
    assert [each.text for each in skills(None, tmp_path)] == []


@pytest.mark.parametrize("head", ["description: [", "description: {a: b}", "- a list", "a text", "description:"])
def test_a_head_that_cannot_be_read_leaves_the_skill(tmp_path: Path, head: str) -> None:
    """Its first words describe it."""
    write(tmp_path / ".agents/skills", "review", f"---\n{head}\n---\nLook well.\n")
    assert [each.description for each in skills(None, tmp_path)] == ["Look well."]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither a file nor a folder that is a link is read: it could stand anywhere."""
    elsewhere = write(tmp_path / "elsewhere", "secret", "Secret.")
    folder = tmp_path / "acme/.agents/skills"
    (folder / "first").mkdir(parents=True)
    (folder / "first/SKILL.md").symlink_to(elsewhere)
    (folder / "second").symlink_to(elsewhere.parent)
    assert list(skills(None, tmp_path / "acme")) == []
