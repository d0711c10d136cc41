"""Bytes of one file -> chunks that can be found on disk again, passages that the model can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import ExtractionError
from ragx.indexing.prepare import Prepared, Preparer, chunk_identity, content_hash
from ragx.providers.base import Embedder, EmbeddingOptions
from ragx.providers.fakes import HashEmbedder
from ragx.providers.registry import open_embedder

MARKDOWN = (
    "---\ntitle: Notes\n---\n\n# Café ☕ notes\n\nIntro line one.\nIntro line two.\n\n"
    "## Zürich\n\n" + "Straße nach Zürich, 東京 and 🐘 elephants. " * 60 + "\n\n"
    "### Table\n\n| a | b |\n|---|---|\n" + "".join(f"| {i} | é{i} |\n" for i in range(80)) + "\n"
    "```python\n# not a heading\n" + "x = 1\n" * 200 + "```\n\n"
    "A line\u2028with a separator and \x0c a form feed.\n"
)
PYTHON = '"""Module."""\n\nimport os\n\n\nclass Größe:\n    """Docs."""\n' + "".join(
    f"\n    def m{i}(self):\n        return '{'ü' * 30}'  # {i}\n" for i in range(40)
)
PROSE = "One sentence here. Another there! " * 90 + "\n\n" + "naïve café " * 400 + "\n"
SAMPLES = {
    "notes.md": MARKDOWN,
    "mod.py": PYTHON,
    "text.txt": PROSE,
    "data.json": '{"é": [1, 2]}\n' * 50,
}
LEGACY = "Prix: café à 5 € – voilà l’été, déjà vu, garçon, naïf, œuvre.\n\n" * 40


def endings(text: str, kind: str) -> str:
    if kind == "mixed":
        ends = ["\n", "\r\n", "\r"]
        return "".join(line + ends[i % 3] for i, line in enumerate(text.split("\n")))
    return text.replace("\n", {"lf": "\n", "crlf": "\r\n", "cr": "\r"}[kind])


def as_bytes(text: str, encoding: str) -> bytes:
    bom = {"utf-8-sig": b"", "utf-16-le+bom": b"\xff\xfe", "utf-16-be+bom": b"\xfe\xff"}
    name = encoding.removesuffix("+bom")
    return bom.get(encoding, b"") + text.encode(name)


@pytest.fixture(scope="module")
def builtin() -> Iterator[Embedder]:
    embedder = open_embedder(EmbeddingOptions(provider="builtin"))
    assert embedder is not None
    yield embedder
    embedder.close()


def check_locations(prepared: Prepared, raw: bytes) -> None:
    """Every chunk is the bytes it names, on the lines it names; nothing visible is left out."""
    text = raw.decode(prepared.encoding)
    covered = set()
    for ordinal, chunk in enumerate(prepared.chunks):
        assert chunk.ordinal == ordinal
        assert raw[chunk.byte_start : chunk.byte_end].decode(prepared.encoding) == chunk.text
        assert chunk.text.strip()
        assert "\ufeff" not in chunk.text
        before = raw[: chunk.byte_start].decode(prepared.encoding)
        # An independent count of line ends: LF, CRLF, CR.
        assert chunk.line_start == 1 + len(re.findall(r"\r\n|\r|\n", before)) - (
            1 if before.endswith("\r") and chunk.text.startswith("\n") else 0
        )
        inner = len(re.findall(r"\r\n|\r|\n", chunk.text))
        ends_a_line = chunk.text.endswith(("\r", "\n"))
        assert chunk.line_end == chunk.line_start + inner - (1 if ends_a_line else 0)
        covered.update(range(len(before), len(before) + len(chunk.text)))
    missing = [i for i, char in enumerate(text) if not char.isspace() and i not in covered]
    assert [text[i] for i in missing if text[i] != "\ufeff"] == []


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", ["lf", "crlf", "cr", "mixed"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le+bom", "utf-16-be+bom"])
def test_every_chunk_is_found_on_disk_again(name: str, kind: str, encoding: str) -> None:
    """HOSTILE: `raw[byte_start:byte_end]` is the chunk, for every file, always."""
    raw = as_bytes(endings(SAMPLES[name], kind), encoding)
    prepared = Preparer(ChunkOptions(), HashEmbedder()).prepare(name, raw)
    assert len(prepared.chunks) >= 2
    check_locations(prepared, raw)
    ids = [chunk.chunk_id for chunk in prepared.chunks]
    assert len(set(ids)) == len(ids)
    assert all(0 <= chunk_id < 2**53 for chunk_id in ids)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_encodings_without_a_mark(encoding: str) -> None:
    raw = LEGACY.encode(encoding)
    prepared = Preparer(ChunkOptions(), None).prepare("a.md", raw)
    assert prepared.encoding == encoding
    assert prepared.note
    check_locations(prepared, raw)


def test_one_windows_byte() -> None:
    """HOSTILE: One byte of Windows-1252 in one README. `printf 'price \\x96 5\\n'`"""
    prepared = Preparer(ChunkOptions(), None).prepare("README.md", b"price \x96 5\n")
    assert prepared.chunks[0].text.strip() == "price – 5"
    check_locations(prepared, b"price \x96 5\n")


def test_a_mark_hides_neither_heading_nor_front_matter() -> None:
    """HOSTILE: A BOM hides the heading on line 1, front matter."""
    preparer = Preparer(ChunkOptions(), None)
    raw = "\ufeff# First\n\nbody\n".encode()
    prepared = preparer.prepare("a.md", raw)
    assert prepared.title == "First"
    assert prepared.chunks[0].heading == ("First",)
    assert prepared.chunks[0].byte_start == 3
    front = preparer.prepare("a.md", "\ufeff---\ntitle: T\n---\n\n# H\n\nbody\n".encode())
    assert front.title == "T"


@pytest.mark.parametrize(
    "raw", [b"", b"   \n\t\n", b"\xef\xbb\xbf", b"\n\n\n", b"\r\r\n", b"\xff\xfe", b"\xff\xfe\n\0"]
)
@pytest.mark.parametrize("name", ["a.md", "a.py", "a.txt", "a.json"])
def test_nothing_to_read_is_no_chunks(name: str, raw: bytes) -> None:
    """HOSTILE: Empty, whitespace-only, BOM-only, newline-only file: zero chunks is legal."""
    prepared = Preparer(ChunkOptions(), HashEmbedder()).prepare(name, raw)
    assert (prepared.chunks, prepared.passages, prepared.n_tokens) == ((), (), 0)


@pytest.mark.parametrize("raw", [b"%PDF-1.4\n", b"\x89PNG\r\n\x1a\n", b"a\0b", b"\1\2\3\4\5\6"])
def test_binary_is_refused(raw: bytes) -> None:
    """HOSTILE: A PDF named `.md`."""
    with pytest.raises(ExtractionError) as caught:
        Preparer(ChunkOptions(), None).prepare("a.md", raw)
    assert caught.value.code == "binary"


# Passages.


def passage_texts(prepared: Prepared) -> list[list[str]]:
    return [[passage.text for passage in windows] for windows in prepared.passages]


def test_no_embedder_no_passages() -> None:
    prepared = Preparer(ChunkOptions(), None).prepare("a.md", MARKDOWN.encode())
    assert set(prepared.passages) == {()}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("size", [60, 200, 700])
def test_passages_fit_the_model_and_cover_the_chunk(
    builtin: Embedder, name: str, size: int
) -> None:
    """HOSTILE: the embedder never sees more than its limit, counted with its own tokenizer."""
    prepared = Preparer(ChunkOptions(size_tokens=size), builtin).prepare(
        name, SAMPLES[name].encode()
    )
    assert len(prepared.passages) == len(prepared.chunks)
    for chunk, texts in zip(prepared.chunks, passage_texts(prepared), strict=True):
        assert texts
        assert all(builtin.count_tokens(text) <= 256 for text in texts)
        has_crumb = bool(chunk.heading or prepared.title)
        crumbs = {text.partition("\n")[0] for text in texts} if has_crumb else {""}
        assert len(crumbs) == 1
        bodies = [text.partition("\n")[2] if has_crumb else text for text in texts]
        if name.endswith(".txt"):
            assert "".join("".join(bodies).split()) == "".join(chunk.text.split())
        # Without overlap the windows are the chunk, blanks aside, in order.
        position = 0
        for body in bodies:
            if chunk.text.find(body.strip(), position) < 0:
                # Cut from a table: its header row and delimiter row stand above.
                assert body.splitlines()[1].strip("|-: ") == ""
                body = "\n".join(body.splitlines()[2:])
            position = chunk.text.index(body.strip(), position) + len(body.strip())
    embedded = builtin.embed_documents([texts[0] for texts in passage_texts(prepared)][:3])
    assert len(embedded) == min(3, len(prepared.chunks))


HOSTILE_SHAPES = {
    # HOSTILE: A 5,000-character line, a 300 KB one-line bundle, 40 KB of base64.
    "line.txt": "word " * 1000,
    "bundle.js": "function a(b){return b+1};var c=a(2);" * 1500,
    "base64.md": "# Key\n\n" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo+" * 1200 + "\n\nafter\n",
    "base64-lines.txt": ("A1b2C3d4" * 19 + "\n") * 300,
    "hex.txt": "".join(f"{i * 2654435761 % 2**32:08x}" for i in range(2400)),
    "dashes.md": "# T\n\n" + "-" * 4000 + "\n\n" + "=" * 900 + " end\n",
    "cjk.txt": "日本語のテキストです。" * 700,
    "emoji.txt": "👩‍👩‍👧‍👦🏳️‍🌈🇨🇭" * 500,
    "marks.txt": ("e" + "\u0301" * 40) * 300,
    "nospace.txt": "a.b/c-d_e" * 900,
    "headings.md": "".join(
        f"{'#' * (i % 6 + 1)} {'Long heading words ' * 12}{i}\n\nx{i} y\n\n" for i in range(40)
    ),
    "deep.md": "".join(f"{'#' * (i + 1)} {'alpha beta ' * 40}{i}\n\n" for i in range(6))
    + "body " * 900,
    "one-heading.md": "# " + "heading " * 2000 + "\n\nbody\n",
    "unk.txt": ("x" * 101 + " ") * 900,
    "cut-unk.md": "# Some heading with words in it\n\n" + ("abcdefghij" * 9 + " tail ") * 300,
}


@pytest.mark.parametrize("name", HOSTILE_SHAPES)
@pytest.mark.parametrize("size", [200, 250])
def test_hostile_shapes_fit_the_model(builtin: Embedder, name: str, size: int) -> None:
    text = HOSTILE_SHAPES[name]
    raw = text.encode()
    prepared = Preparer(ChunkOptions(size_tokens=size), builtin).prepare(name, raw)
    check_locations(prepared, raw)
    assert all(len(chunk.text) <= 20000 for chunk in prepared.chunks)
    texts = [text for windows in passage_texts(prepared) for text in windows]
    over = [builtin.count_tokens(text) for text in texts if builtin.count_tokens(text) > 256]
    assert over == []


@pytest.mark.parametrize(
    "n_chars",
    [
        20_000,
        20_300,
    ],
)
def test_one_long_word_is_stored_about_once(builtin: Embedder, n_chars: int) -> None:
    """HOSTILE: 40 KB of base64 first in the corpus: bounded chunks.

    The tokenizer knows no word over 100 characters and makes it one token.
    """
    text = "".join(f"{i * 2654435761 % 2**32:08x}" for i in range(5000))[:n_chars]
    prepared = Preparer(ChunkOptions(), builtin).prepare("hex.txt", text.encode())
    assert sum(len(chunk.text) for chunk in prepared.chunks) <= 1.5 * len(text)


def test_a_prefix_counts(builtin: Embedder) -> None:
    options = EmbeddingOptions(provider="builtin", doc_prefix="title: none | text: ")
    embedder = open_embedder(options)
    assert embedder is not None
    try:
        prepared = Preparer(ChunkOptions(size_tokens=240), embedder).prepare(
            "text.txt", PROSE.encode()
        )
        for texts in passage_texts(prepared):
            assert all(embedder.count_tokens(text) <= 256 for text in texts)
            assert all(builtin.count_tokens(options.doc_prefix + text) <= 256 for text in texts)
    finally:
        embedder.close()


# Identity.


def test_keys_follow_content_and_not_the_path() -> None:
    preparer = Preparer(ChunkOptions(), HashEmbedder())
    one = preparer.prepare("a/notes.md", MARKDOWN.encode())
    other = preparer.prepare("elsewhere/moved.md", MARKDOWN.encode())
    assert one.passages == other.passages
    assert not {c.chunk_id for c in one.chunks} & {c.chunk_id for c in other.chunks}


def test_keys_differ_by_model_and_prefix() -> None:
    keys = set()
    for embedder in (
        HashEmbedder(),
        HashEmbedder(dimension=128),
        HashEmbedder(EmbeddingOptions(provider="hash", doc_prefix="doc: ")),
    ):
        prepared = Preparer(ChunkOptions(), embedder).prepare("a.md", b"# H\n\nbody\n")
        keys.add(prepared.passages[0][0].key)
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["notes.md", "text.txt", "mod.py"])
@pytest.mark.parametrize("inserted", ["", "one more line\n", "\n\n\n", "x\n" * 7])
def test_ids_outlast_lines_inserted_above(name: str, inserted: str) -> None:
    """SPEC 6: an edit above a chunk does not change its id."""
    paragraphs = {
        "notes.md": "".join(f"# Section {i}\n\n{'word ' * 150}{i}\n\n" for i in range(8)),
        "text.txt": "".join(f"{'word ' * 190}{i}.\n\n" for i in range(8)),
        "mod.py": "".join(
            f"def f{i}():\n" + f"    x = {i}  # and some more\n" * 25 + "\n\n" for i in range(8)
        ),
    }[name]
    above = {"notes.md": "# Zero\n\n", "text.txt": "", "mod.py": ""}[name]
    lead = {"notes.md": "word " * 150 + "\n\n", "text.txt": "lead " * 190 + "\n\n", "mod.py": ""}[
        name
    ]
    comment = {"mod.py": "# a comment\n" * 30 + "\n\n"}.get(name, "")
    if name == "mod.py":
        inserted = re.sub(r"(?m)^(\w)", r"# \1", inserted)
    before = (above + lead + comment + paragraphs).encode()
    after = (above + inserted + lead + comment + paragraphs).encode()
    preparer = Preparer(ChunkOptions(), HashEmbedder())
    old = [chunk.chunk_id for chunk in preparer.prepare(name, before).chunks]
    new = [chunk.chunk_id for chunk in preparer.prepare(name, after).chunks]
    assert len(old) >= 8
    assert set(old[-6:]) <= set(new)


def test_equal_texts_in_one_file_have_their_own_ids() -> None:
    assert len({chunk_identity("a", "x", i) for i in range(5)}) == 5
    assert chunk_identity("a", "x", 0) != chunk_identity("b", "x", 0)
    assert chunk_identity("a", "x\0001", 0) != chunk_identity("a", "x", 1)


def test_the_hash_is_of_the_bytes() -> None:
    assert content_hash(b"a") != content_hash(b"a\n")
    assert len(content_hash(b"")) == 32


def test_preparing_is_deterministic(builtin: Embedder) -> None:
    for name, text in SAMPLES.items():
        one, other = (Preparer(ChunkOptions(), builtin).prepare(name, text.encode()) for _ in "ab")
        assert one == other


def test_estimates_serve_where_no_tokenizer_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = HashEmbedder()
    monkeypatch.setattr(embedder, "token_starts", lambda _text: None)
    raw = PROSE.encode()
    prepared = Preparer(ChunkOptions(size_tokens=100), embedder).prepare("a.txt", raw)
    check_locations(prepared, raw)
    assert len(prepared.chunks) > 5


Sizes = Callable[[str], list[int]]


def test_a_limit_smaller_than_the_chunk_makes_windows() -> None:
    embedder = HashEmbedder(max_tokens=40)
    prepared = Preparer(ChunkOptions(size_tokens=150), embedder).prepare("a.txt", PROSE.encode())
    windows = [len(texts) for texts in passage_texts(prepared)]
    assert max(windows) >= 4
    for chunk, texts in zip(prepared.chunks, passage_texts(prepared), strict=True):
        assert all(embedder.count_tokens(text) <= 40 for text in texts)
        assert "".join("".join(texts).split()) == "".join(chunk.text.split())


DENSE = {**SAMPLES, "digits.txt": "31415926 53589793 " * 300, "signs.txt": "{}[]();:,.!? " * 300}


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("limit", [64, 256, 512])
def test_a_limit_without_a_tokenizer_holds_by_a_safe_guess(name: str, limit: int) -> None:
    embedder = open_embedder(
        EmbeddingOptions(
            provider="openai", base_url="http://127.0.0.1:9/v1", model="m", max_tokens=limit
        )
    )
    assert embedder is not None
    prepared = Preparer(ChunkOptions(size_tokens=450), embedder, 256).prepare(
        name, DENSE[name].encode()
    )
    for chunk, passages in zip(prepared.chunks, passage_texts(prepared), strict=True):
        assert all(embedder.count_tokens(text) <= limit for text in passages)
        if name.endswith(".txt"):  # nothing stands above their passages
            assert "".join("".join(passages).split()) == "".join(chunk.text.split())
    parts = [part.text for row in prepared.parts for part in row]
    assert all(embedder.count_tokens(text) <= limit for text in parts)


@pytest.mark.parametrize("limit", [3, 4, 8])
def test_a_limit_that_takes_next_to_nothing(limit: int) -> None:
    embedder = HashEmbedder(max_tokens=limit)
    prepared = Preparer(ChunkOptions(), embedder).prepare(
        "a.md", b"# Heading here\n\none two three\n"
    )
    for texts in passage_texts(prepared):
        assert all(embedder.count_tokens(text) <= limit for text in texts)
