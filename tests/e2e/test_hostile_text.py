"""HOSTILE.md, "Text and offsets", through the command line. Docstrings quote its lines."""

from __future__ import annotations

import re
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]


def files(answer: dict[str, Any]) -> list[str]:
    return [entry["file"] for entry in answer["results"]]


def check_locations(root: Path, path: str, ask: Ask) -> list[str]:
    """Every chunk of a file is the bytes and lines it names; returns the texts."""
    view = ask("inspect", "file", path, "--text", cwd=root)
    raw = (root / path).read_bytes()
    texts = []
    for part in view["chunks"]:
        text = raw[part["byte_start"] : part["byte_end"]].decode(view["encoding"])
        assert text == part["text"]
        before = raw[: part["byte_start"]].decode(view["encoding"])
        assert part["line_start"] == 1 + len(re.findall(r"\r\n|\r|\n", before))
        inside = len(re.findall(r"\r\n|\r|\n", text[:-1] if text.endswith("\n") else text))
        inside -= (
            text.endswith("\r\n")
            and not text.endswith("\n\r\n")
            and inside > 0
            and (text[:-1].endswith("\r"))
        )
        assert part["line_end"] == part["line_start"] + inside
        texts.append(text)
    return texts


def test_one_windows_byte_stops_nothing(make_corpus: MakeCorpus, ask: Ask) -> None:
    r"""One byte of Windows-1252 in one README stops a whole run. `printf 'price \x96 5\n'`"""
    root = make_corpus({"README.md": b"price \x96 5\n", "a.md": "zebra\n"})
    report = ask("index", "-v", cwd=root)
    assert (report["ok"], report["files_indexed"]) == (True, 2)
    assert [(note["file"], "cp1252" in note["note"]) for note in report["notes"]] == [
        ("README.md", True)
    ]
    assert files(ask("query", "price", cwd=root)) == ["README.md"]
    assert check_locations(root, "README.md", ask) == ["price – 5"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", [True, False])
def test_utf16_is_text(make_corpus: MakeCorpus, ask: Ask, encoding: str, mark: bool) -> None:
    """UTF-16 files count as binary because of their NULs. Sniff the BOM first, also without one."""
    text = (
        "# Käse\r\n\r\nThe zebra eats some cheese and more.\r\n\r\n## Next\r\n\r\n" + "lion " * 300
    )
    raw = (("\ufeff" if mark else "") + text).encode(encoding)
    root = make_corpus({"a.md": raw})
    report = ask("index", cwd=root)
    assert report["files_indexed"] == 1
    assert report["skipped"].get("binary", 0) == 0
    answer = ask("query", "cheese", cwd=root)
    assert answer["results"][0]["chunks"][0]["heading"][0] == "Käse"
    texts = check_locations(root, "a.md", ask)
    assert "\ufeff" not in "".join(texts)
    assert "".join("".join(texts).split()) == "".join(text.split())


def test_a_mark_hides_nothing(make_corpus: MakeCorpus, ask: Ask) -> None:
    """A BOM hides the heading on line 1, front matter, or the first pattern of `.gitignore`."""
    mark = "\ufeff"
    root = make_corpus(
        {
            "heading.md": f"{mark}# First\n\nzebra\n",
            "front.md": f"{mark}---\ntitle: Okapi\n---\n\nbody quagga\n",
            ".gitignore": f"{mark}secret.md\n",
            "secret.md": "gnu\n",
            "code.py": f"{mark}def first():\n    return 'tapir'\n",
        }
    )
    (root / ".git").mkdir()
    settings = (root / "ragx.toml").read_text()
    (root / "ragx.toml").write_text(mark + settings, encoding="utf-8")
    ask("index", cwd=root)
    (entry,) = ask("query", "zebra", cwd=root)["results"]
    assert entry["chunks"][0]["heading"] == ["First"]
    assert entry["chunks"][0]["byte_start"] == 3
    assert ask("inspect", "file", "front.md", cwd=root)["title"] == "Okapi"
    assert ask("query", "gnu", cwd=root, status=1)["results"] == []
    (entry,) = ask("query", "tapir", "-C", "5", cwd=root)["results"]
    chunk = ask("inspect", "chunk", str(entry["chunks"][0]["chunk_id"]), cwd=root)
    assert "first" in chunk["symbols"]
    for name in ("heading.md", "front.md", "code.py"):
        assert mark not in "".join(check_locations(root, name, ask))


def test_a_mark_is_in_no_context_line(make_corpus: MakeCorpus, ask: Ask) -> None:
    """As above, for lines that are read fresh from disk."""
    text = "\ufefffirst line\n\n" + "# Zebra\n\nzebra\n"
    root = make_corpus({"a.md": text}, settings="[chunking]\nsize_tokens = 32\n")
    ask("index", cwd=root)
    for entry in ask("query", "zebra", "-C", "5", cwd=root)["results"]:
        for chunk in entry["chunks"]:
            before = chunk["context"]["before"]
            assert "\ufeff" not in (before or {"text": ""})["text"]


CLUSTERS = [
    "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇨🇭", "👍🏽", "e\u0301\u0323", "ก็", "नि", "한", "1️⃣", "❤️", "𠮷", "\r\n",
]  # fmt: skip


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py", "a.json"])
def test_no_cut_inside_a_character(make_corpus: MakeCorpus, ask: Ask, name: str) -> None:
    """Chunk cuts inside an emoji, surrogate pair or combining sequence; previews cut likewise."""
    root = make_corpus(
        {
            f"{i}/{name}": "".join("x" * (j % 3) + unit for j in range(700))
            for i, unit in enumerate(CLUSTERS)
        },
        settings="[chunking]\nsize_tokens = 32\n",
    )
    ask("index", cwd=root)
    for i, unit in enumerate(CLUSTERS):
        path = f"{i}/{name}"
        raw = (root / path).read_bytes()
        view = ask("inspect", "file", path, "--text", cwd=root)
        assert view["chunk_count"] > 5 or unit == "\r\n"
        text = raw.decode()
        allowed = {len(text[: m.start()].encode()) for m in re.finditer(re.escape(unit), text)}
        allowed |= {len(text[: m.end()].encode()) for m in re.finditer(re.escape(unit), text)}
        allowed |= {len(text[: m.start()].encode()) for m in re.finditer("x", text)}
        for part in view["chunks"]:
            assert {part["byte_start"], part["byte_end"]} <= allowed, unit
            preview = part["preview"]
            rest = part["text"].strip()[len(preview) :]
            assert not rest or not unicodedata.combining(rest[0])
            assert not rest or rest[0] not in "\u200d\ufe0f\U0001f3fd"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "mixed"])
@pytest.mark.parametrize("name", ["a.md", "a.py", "a.txt"])
def test_line_ends_of_every_kind(make_corpus: MakeCorpus, ask: Ask, end: str, name: str) -> None:
    """CRLF, lone CR and mixed endings: offsets drift by one a line."""
    lines = []
    for i in range(150):
        lines.append(f"# Part {i}" if name == "a.md" and i % 9 == 0 else f"line{i} zebra é{i}")
        if i % 4 == 0:
            lines.append("")
    ends = ["\n", "\r\n", "\r"] if end == "mixed" else [end]
    text = "".join(line + ends[i % len(ends)] for i, line in enumerate(lines))
    lines = re.split(r"\r\n|\r|\n", text)  # a CR and the LF of a blank line are one end
    root = make_corpus({name: text.encode()}, settings="[chunking]\nsize_tokens = 60\n")
    ask("index", cwd=root)
    texts = check_locations(root, name, ask)
    assert len(texts) > 5
    answer = ask("query", "line77", "-C", "2", cwd=root)
    chunk = next(c for e in answer["results"] for c in e["chunks"] if "line77" in c["text"])
    wanted = lines.index("line77 zebra é77") + 1
    shown = re.split(r"\r\n|\r|\n", chunk["text"])
    assert chunk["line_start"] + shown.index("line77 zebra é77") == wanted
    for side, step in (("before", -1), ("after", 1)):
        context = chunk["context"][side]
        at = context["line_start" if step > 0 else "line_end"]
        shown = [line for line in re.split(r"\r\n|\r|\n", context["text"]) if line.strip()]
        around = [line for line in lines[context["line_start"] - 1 : context["line_end"]] if line]
        assert shown == around
        assert at == (chunk["line_end"] + 1 if step > 0 else chunk["line_start"] - 1)


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("我们讨论了数据库的迁移", ["数据", "迁移", "库", "数据库迁移"]),
        ("東京タワーに行きました", ["東京", "タワ", "行"]),
        ("ประเทศไทยสวยงาม", ["ไทย", "สว", "งาม"]),
        ("대한민국의 데이터베이스", ["민국", "베이", "데"]),
    ],
)
def test_two_characters_find_something(
    make_corpus: MakeCorpus, ask: Ask, text: str, questions: list[str]
) -> None:
    """CJK, Thai: two-character query finds nothing in the lexical index."""
    root = make_corpus({"a.md": f"# Title\n\n{text}\n", "b.md": "nothing of it\n"})
    ask("index", cwd=root)
    for question in questions:
        assert files(ask("query", question, "--mode", "lexical", cwd=root)) == ["a.md"], question


def test_odd_separators_end_no_line(make_corpus: MakeCorpus, ask: Ask) -> None:
    """Lines end at LF, CRLF, CR only (SPEC 4)."""
    text = (
        f"{'word ' * 60}"
        "one\u2028still one\u2029still\x0bstill\x0cstill\x1c\x1d\x1e\x85still\ntwo zebra\n"
    )
    root = make_corpus({"a.txt": text})
    ask("index", cwd=root)
    (entry,) = ask("query", "zebra", cwd=root)["results"]
    assert entry["chunks"][0]["line_end"] == 2
    check_locations(root, "a.txt", ask)


def test_a_nul_far_in_and_odd_characters_survive(make_corpus: MakeCorpus, ask: Ask) -> None:
    text = "filler words here. " * 600 + "\nzebra \0 after \u202e rtl \ufffd \ufeff end\n"
    root = make_corpus({"a.txt": text})
    ask("index", cwd=root)
    texts = check_locations(root, "a.txt", ask)
    assert any("zebra \0 after" in part for part in texts)
    assert files(ask("query", "zebra", cwd=root)) == ["a.txt"]
