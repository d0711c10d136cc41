"""Two copies of a file that differ in a few words are one result, and none is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

SENTENCES = (
    "The zebra grazes on the savanna from early morning until the sun stands high.",
    "Its stripes confuse the flies that trouble other animals of that size and colour.",
    "Herds follow the rain over hundreds of miles and cross the river twice a year.",
    "A foal knows its mother by her voice, by her smell and by the pattern of her coat.",
    "At night one animal of every family stays awake while the others sleep around it.",
    "Lions wait near the water, and whoever drinks first takes the greatest risk of all.",
    "Nobody has ever managed to make a saddle horse of one, though several people tried.",
)
ORIGINAL = "# The zebra\n\n" + "\n".join(SENTENCES) + "\n"
COPY = ORIGINAL.replace("early morning", "late evening")
N_OTHERS = 25
OTHERS = {
    f"other/{i:02}.md": f"# Report {i}\n\nA zebra was seen at place number {i}, with {i} more.\n"
    for i in range(N_OTHERS)
}


def sources(copies: dict[str, str]) -> dict[str, str]:
    return {**OTHERS, **copies}


def places(found: dict[str, Any]) -> list[str]:
    """Every file that an answer names, in entries and beside them."""
    return [
        name for entry in found["results"] for name in (entry["file"], *entry.get("also_in", ()))
    ]


@pytest.mark.parametrize("provider", ["none", "server"])
def test_near_copies_are_one_entry_and_k_are_still_returned(
    make_corpus: MakeCorpus, ask: Ask, embedding_server: Any, provider: str
) -> None:
    root = make_corpus(sources({"a/zebra.md": ORIGINAL, "b/zebra.md": COPY}))
    if provider == "server":
        (root / "ragx.toml").write_text(f"[embeddings]\n{embedding_server.settings}")
    ask("index", cwd=root)
    for top in (5, 10, 26):
        found = ask("query", "zebra grazes on the savanna", "--top", str(top), cwd=root)
        assert len(found["results"]) == top
        first, *rest = found["results"]
        assert first["file"] == "a/zebra.md"
        assert first["also_in"] == ["b/zebra.md"]
        assert not [entry["also_in"] for entry in rest if entry["also_in"]]
        assert len(set(places(found))) == len(places(found)) == top + 1
    # The words that differ still lead to the file that holds them.
    first = ask("query", "zebra late evening", cwd=root)["results"][0]
    assert (first["file"], first["also_in"]) == ("b/zebra.md", ["a/zebra.md"])


def test_brief_and_files_only_name_the_copy(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(sources({"a/zebra.md": ORIGINAL, "b/zebra.md": COPY}))
    ask("index", cwd=root)
    for flag in ("--brief", "--files-only"):
        (first, *rest) = ask("query", "zebra grazes savanna", flag, cwd=root)["files"]
        assert first["also_in"] == ["b/zebra.md"]
        assert "b/zebra.md" not in [entry["file"] for entry in rest]


def test_a_file_of_another_subject_with_the_same_licence_is_no_copy(
    make_corpus: MakeCorpus, ask: Ask
) -> None:
    licence = "".join(f"# Line {i} of a licence that stands in every file.\n" for i in range(8))
    body = "\n".join(f"    step_{i} = prepare_{{0}}_{i}(animal)" for i in range(8))
    files = {
        f"{name}.py": f"{licence}\n\ndef {name}(animal):\n{body.format(name)}\n"
        for name in ("zebra", "lion", "horse")
    }
    root = make_corpus(sources(files))
    ask("index", cwd=root)
    found = ask("query", "licence animal", "--top", "30", cwd=root)
    assert set(files) <= {entry["file"] for entry in found["results"]}


def test_a_short_text_with_a_word_changed_is_no_copy(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(sources({}))
    ask("index", cwd=root)
    found = ask("query", "zebra seen", "--top", str(N_OTHERS), cwd=root)
    assert {entry["file"] for entry in found["results"]} == set(OTHERS)


def test_near_copies_within_a_file_stay(make_corpus: MakeCorpus, ask: Ask) -> None:
    """A passage that differs by a word from the one above it is there for that word."""
    parts = (ORIGINAL, COPY.replace("# The zebra", "# The other zebra"))
    root = make_corpus({"both.md": "\n".join(parts)}, settings="[chunking]\nsize_tokens = 128\n")
    ask("index", cwd=root)
    (entry,) = ask("query", "zebra grazes savanna morning evening", cwd=root)["results"]
    assert entry["also_in"] == []
    texts = " ".join(part["text"] for part in entry["chunks"])
    assert "early morning" in texts
    assert "late evening" in texts


def test_an_equal_of_a_near_copy_is_not_lost(make_corpus: MakeCorpus, ask: Ask) -> None:
    copies = {"a.md": ORIGINAL, "b.md": COPY, "c.md": COPY}
    root = make_corpus(copies)
    ask("index", cwd=root)
    found = ask("query", "early morning zebra", cwd=root)
    assert sorted(places(found)) == sorted(copies)
