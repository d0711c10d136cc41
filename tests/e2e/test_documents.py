"""Documents through the real CLI: places instead of lines, nothing read twice, nothing silent."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import shutil
import sqlite3
import string
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragx.errors import ExtractionError
from ragx.store.rows import checksum

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Ask = Callable[..., dict[str, Any]]
Make = Callable[..., Path]

LONG = "The herd was counted again at dawn, and every animal was entered into the book. " * 8


def notebook(*cells: tuple[str, str]) -> str:
    return json.dumps(
        {
            "cells": [
                {"cell_type": kind, "metadata": {}, "source": source}
                | ({"outputs": [], "execution_count": 1} if kind == "code" else {})
                for kind, source in cells
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


HERD = notebook(
    ("markdown", "# Zebra herd\n\nHow the herd is read. " + LONG),
    ("code", "herd = read_csv('herd.csv')\n" + "\n".join(f"check_{n} = {n}" for n in range(80))),
    ("markdown", "## Weights\n\nMean weight by age, see [the plan](plan.md#costs). " + LONG),
)
MAIL = (
    "From: Ada <ada@example.org>\nTo: Ben <ben@example.org>\nSubject: Fodder order\n"
    "Date: Tue, 3 Nov 2026 09:30:00 +0100\n\nWe need forty bales of lucerne by Friday.\n"
)
PLAN = "# Plan\n\nAll about zebras.\n\n## Costs\n\nThe fence costs 900.\n"


@pytest.fixture
def corpus(make_corpus: Make) -> Path:
    return make_corpus({"herd.ipynb": HERD, "order.eml": MAIL, "plan.md": PLAN})


def extractions(root: Path) -> set[str]:
    with closing(sqlite3.connect(root / ".ragx" / "index.db")) as db:
        return {key for (key,) in db.execute("SELECT key FROM extractions")}


def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a document was read again")

    monkeypatch.setattr("ragx.documents.guard.Guard.extract", refuse)


def test_an_answer_has_the_cell_and_no_lines(corpus: Path, ask: Ask) -> None:
    assert ask("index", cwd=corpus)["files_indexed"] == 3
    found = ask("query", "mean weight by age", "-C", "3", cwd=corpus)
    entry = found["results"][0]
    chunk = entry["chunks"][0]
    assert entry["file"] == "herd.ipynb"
    assert chunk["locator"] == {
        "kind": "cell", "label": "cell 3", "cell": 3, "end": 3,
        "text_line_start": chunk["locator"]["text_line_start"],
        "text_line_end": chunk["locator"]["text_line_end"],
    }  # fmt: skip
    places = ("line_start", "line_end", "byte_start", "byte_end")
    assert [chunk[key] for key in places] == [None] * 4
    assert chunk["heading"] == ["Zebra herd", "Weights"]
    before = chunk["context"]["before"]
    assert before["source"] == "extracted"
    assert "check_79 = 79" in before["text"]
    # Its link leads to the heading of a text file, and that has lines.
    plan = next(entry for entry in found["results"] if entry["file"] == "plan.md")
    assert plan["chunks"][0]["locator"] is None
    assert plan["chunks"][0]["line_start"] >= 1
    assert "heat" in plan["chunks"][0]["breakdown"]


def test_every_command_that_shows_places_shows_those_of_documents(
    corpus: Path, ask: Ask, ragx_inline: Run
) -> None:
    ask("index", cwd=corpus)
    brief = ask("query", "lucerne bales", "--brief", cwd=corpus)["files"][0]
    assert (brief["file"], brief["place"]) == ("order.eml", "part 1: message")
    first, last = map(int, brief["lines"].split("-"))
    pack = ask("query", "lucerne bales", "--budget", "800", cwd=corpus)["passages"][0]
    assert pack["locator"]["part"] == 1
    assert pack["line_start"] is None
    assert ask("read", f"order.eml:{first}-{last}", cwd=corpus)["text"] == pack["text"]
    chunk_id = pack["chunk_ids"][0]
    shown = ask("inspect", "chunk", str(chunk_id), cwd=corpus)
    assert (shown["byte_start"], shown["locator"]["kind"]) == (None, "part")
    read = ask("read", str(chunk_id), cwd=corpus)
    assert (read["source"], read["locator"]["part"]) == ("extracted", 1)
    whole = ask("read", "herd.ipynb:1-5", cwd=corpus)
    assert (whole["locator"]["cell"], whole["heading"]) == (1, [])
    lines = ask("read", f"order.eml:1-{shown['locator']['text_line_end']}", cwd=corpus)
    assert lines["source"] == "extracted"
    assert "forty bales" in lines["text"]
    file = ask("inspect", "file", "order.eml", cwd=corpus)
    assert file["extractor"].startswith("mail@")
    assert file["chunks"][0]["locator"]["label"] == "part 1: message"
    human = ragx_inline("query", "lucerne bales", cwd=corpus).stdout
    assert "part 1: message" in human
    assert "forty bales" in ragx_inline("inspect", "file", "order.eml", "--text", cwd=corpus).stdout
    verified = ask("ask", "--verify", pack["id"], cwd=corpus)["citations"][0]
    assert (verified["state"], verified["lines_exist"]) == ("current", True)
    assert "forty bales" in verified["text"]


def test_filters_take_documents(corpus: Path, ask: Ask) -> None:
    ask("index", cwd=corpus)
    for flags in (("--lang", "notebook"), ("--lang", "ipynb")):
        found = ask("query", "zebra herd", *flags, cwd=corpus)
        assert [entry["file"] for entry in found["results"]] == ["herd.ipynb"]
    dated = ask("query", "fodder", "--since", "2026-11-03", "--until", "2026-11-03", cwd=corpus)
    assert [entry["file"] for entry in dated["results"]] == ["order.eml"]
    assert dated["results"][0]["date_source"] == "metadata"


def test_a_document_is_read_once_however_it_is_moved(
    corpus: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("index", cwd=corpus)
    before = extractions(corpus)
    assert len(before) == 2
    no_reading(monkeypatch)
    (corpus / "sub").mkdir()
    (corpus / "herd.ipynb").rename(corpus / "sub" / "herd.ipynb")
    shutil.copy(corpus / "order.eml", corpus / "copy.eml")
    os.utime(corpus / "order.eml")
    assert ask("index", cwd=corpus)["files_indexed"] == 2
    assert ask("index", "--full", cwd=corpus)["files_indexed"] == 4
    assert ask("index", cwd=corpus)["files_unchanged"] == 4
    assert extractions(corpus) == before


def test_the_text_of_a_deleted_document_goes_with_it(corpus: Path, ask: Ask) -> None:
    ask("index", cwd=corpus)
    (corpus / "order.eml").unlink()
    (corpus / "herd.ipynb").write_text(notebook(("markdown", "Nothing of it is left.")))
    ask("index", cwd=corpus)
    assert len(extractions(corpus)) == 1
    assert ask("query", "lucerne", cwd=corpus, status=1)["results"] == []


def test_a_run_after_edits_leaves_what_a_full_one_would(corpus: Path, ask: Ask) -> None:
    ask("index", cwd=corpus)
    (corpus / "herd.ipynb").write_text(notebook(("markdown", "# Zebras\n\n" + LONG)))
    (corpus / "order.eml").rename(corpus / "old.eml")
    (corpus / "page.html").write_text(
        "<!doctype html><html><head><title>Hay</title></head><body><main><h1>Hay</h1>"
        f"<p>{LONG}</p><p>See <a href='plan.md'>the plan</a>.</p></main></body></html>"
    )
    (corpus / "named.pdf").write_text("plain text under another name\n")
    ask("index", cwd=corpus)
    assert ask("verify", cwd=corpus)["ok"]
    one = ask("query", "zebra plan hay", cwd=corpus)
    ask("index", "--full", cwd=corpus)
    assert ask("query", "zebra plan hay", cwd=corpus) == one
    named = ask("inspect", "file", "named.pdf", cwd=corpus)
    assert (named["status"], named["extractor"]) == ("ok", None)


def test_a_broken_document_fails_alone_and_is_not_tried_again(
    corpus: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / "broken.ipynb").write_text('{"cells": [')
    done = ask("index", cwd=corpus, status=2)
    (failure,) = done["failed"]
    assert (failure["file"], failure["code"]) == ("broken.ipynb", "damaged")
    assert done["files_indexed"] == 3
    no_reading(monkeypatch)
    assert ask("index", cwd=corpus, status=2)["failed"] == [failure]
    # Another run would bring nothing in, and one over other files changes nothing of that.
    (corpus / "plan.md").write_text(PLAN + "More.\n")
    ask("index", "plan.md", cwd=corpus)
    status = ask("status", cwd=corpus)
    assert [row["file"] for row in status["failed"]] == ["broken.ipynb"]
    assert status["drift"] == {"new": 0, "changed": 0, "deleted": 0}
    assert ask("index", "--dry-run", cwd=corpus)["files"] == 0


def test_the_version_before_a_broken_one_stays(corpus: Path, ask: Ask) -> None:
    ask("index", cwd=corpus)
    (corpus / "herd.ipynb").write_text(HERD[: len(HERD) // 2])
    ask("index", cwd=corpus, status=2)
    found = ask("query", "mean weight by age", cwd=corpus)
    assert found["results"][0]["file"] == "herd.ipynb"
    assert any("changed since" in line for line in found["warnings"])


def test_a_format_that_nothing_reads_is_left_out_and_comes_in_once_something_does(
    corpus: Path, ask: Ask, ragx_inline: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragx.documents.formats import registry

    real = registry.is_installed
    with monkeypatch.context() as patch:
        patch.setattr(registry, "is_installed", lambda one: one.name != "mail" and real(one))
        assert ask("index", cwd=corpus)["skipped"]["no_extractor"] == 1
        listed = ask("inspect", "file", "order.eml", cwd=corpus)
        assert listed["status"] == "skipped:no_extractor"
        assert "pip install '.[docs]'" in listed["note"]
        assert ask("status", cwd=corpus)["skipped"]["no_extractor"] == 1
        assert ask("status", cwd=corpus)["drift"]["changed"] == 0
    assert ask("status", cwd=corpus)["drift"]["changed"] == 1
    assert ask("index", cwd=corpus)["files_indexed"] == 1
    assert ask("query", "lucerne", cwd=corpus)["results"][0]["file"] == "order.eml"


def test_another_version_of_an_extractor_reads_its_documents_again(
    corpus: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragx.documents.formats import registry

    ask("index", cwd=corpus)
    real = registry.identity
    monkeypatch.setattr(registry, "identity", lambda one: real(one).replace("mail@1", "mail@2"))
    assert ask("status", cwd=corpus)["drift"] == {"new": 0, "changed": 1, "deleted": 0}
    done = ask("index", cwd=corpus)
    assert (done["files_indexed"], done["files_unchanged"]) == (1, 2)
    assert ask("inspect", "file", "order.eml", cwd=corpus)["extractor"].startswith("mail@2")
    assert ask("verify", cwd=corpus)["ok"]


def test_a_secret_inside_a_document_stays_out(corpus: Path, ask: Ask) -> None:
    """Its bytes show nothing of it."""
    key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us"
    body = f"Here is it:\n-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"
    packed = base64.b64encode(body.encode()).decode()
    head = MAIL.partition("\n\n")[0] + "\nContent-Transfer-Encoding: base64\n\n"
    (corpus / "keys.eml").write_text(head + packed + "\n")
    assert ask("index", cwd=corpus)["skipped"]["secret"] == 1
    assert ask("inspect", "file", "keys.eml", cwd=corpus)["chunk_count"] == 0
    with closing(sqlite3.connect(corpus / ".ragx" / "index.db")) as db:
        kept = [zlib.decompress(data[1:]) for (data,) in db.execute("SELECT data FROM extractions")]
    assert len(kept) == 2
    assert not any(key.encode() in text for text in kept)


def test_a_secret_in_a_title_or_link_counts_too(corpus: Path, ask: Ask) -> None:
    token = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))
    packed = base64.b64encode(f"{token}".encode()).decode()
    page = f"<html><body><p>See <a href='https://x.example/?t={token}'>there</a>.</p></body></html>"
    (corpus / "a.eml").write_text(f"From: a@example.org\nSubject: =?utf-8?B?{packed}?=\n\nHay.\n")
    (corpus / "b.eml").write_text(
        "From: a@example.org\nSubject: s\nContent-Type: text/html\n"
        f"Content-Transfer-Encoding: base64\n\n{base64.b64encode(page.encode()).decode()}\n"
    )
    assert ask("index", cwd=corpus)["skipped"]["secret"] == 2


def fails_with(patch: pytest.MonkeyPatch, code: str) -> list[str]:
    """From now on every document fails so; the list grows with each that is tried."""
    tried: list[str] = []

    def extract(_: object, name: str, raw: bytes) -> None:
        tried.append(name)
        raise ExtractionError(f"it is {code}", code=code)

    patch.setattr("ragx.documents.guard.Guard.extract", extract)
    return tried


def test_a_failure_by_time_counts_for_its_limits_and_a_full_run_tries_again(
    corpus: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        tried = fails_with(patch, "extraction_timeout")
        assert len(ask("index", cwd=corpus, status=2)["failed"]) == 2
        ask("index", cwd=corpus, status=2)
        assert len(tried) == 2
        ask("index", "--full", cwd=corpus, status=2)
        assert len(tried) == 4
        ask("config", "set", "documents.timeout_s", "90", cwd=corpus)
        ask("index", cwd=corpus, status=2)
        assert len(tried) == 6
    ask("index", "--full", cwd=corpus)


def test_a_fault_of_the_machine_is_not_kept(
    corpus: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fails_with(patch, "extractor_broken")
        assert len(ask("index", cwd=corpus, status=2)["failed"]) == 2
        assert ask("status", cwd=corpus)["drift"]["changed"] == 2
    assert ask("index", cwd=corpus)["files_indexed"] == 2


FORGED = [
    b"", b"T", b"Tno zlib", b"Xabc", b"T" + zlib.compress(b"[" * 100_000),
    b"T" + zlib.compress(
        b'{"title":7,"date":"","tags":[],"skipped_parts":[],"places":[],"blocks":[]}'
    ),
    b"T" + zlib.compress(bytes(200_000_000)),
    b"F" + zlib.compress(b'{"code":"special","message":"x","passing":null}'),
    b"F" + zlib.compress(b'{"code":["damaged"],"message":"x","passing":null}'),
    b"F" + zlib.compress(b'["damaged"]'),
]  # fmt: skip


@pytest.mark.parametrize("data", FORGED, ids=range(len(FORGED)))
def test_what_somebody_else_has_stored_is_not_believed(corpus: Path, ask: Ask, data: bytes) -> None:
    """A clone may bring an index, and a hint that says --full must hold for it."""
    ask("index", cwd=corpus)
    before = ask("query", "mean weight by age", cwd=corpus)
    with closing(sqlite3.connect(corpus / ".ragx" / "index.db")) as db, db:
        db.execute("UPDATE extractions SET data = ?, checksum = ?", (data, checksum(data)))
    (corpus / ".ragx" / "index.seal").unlink()
    ask("index", "--full", cwd=corpus)
    assert ask("query", "mean weight by age", cwd=corpus) == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("chunks.locator", '["page",1e400,1,""]'),
        ("chunks.locator", '["page",Infinity,1,""]'),
        ("chunks.locator", '["page",-5,1,""]'),
        ("chunks.locator", '["",1,1,""]'),
        ("chunks.locator", "[" * 100_000),
        ("files.skipped_parts", '[["a",1e400,"b"]]'),
        ("files.skipped_parts", "[" * 100_000),
        ("files.extractor", b"mail@1"),
    ],
)
def test_forged_rows_are_damage_and_no_defect(
    corpus: Path, ask: Ask, column: str, value: str | bytes
) -> None:
    ask("index", cwd=corpus)
    table, name = column.split(".")
    with closing(sqlite3.connect(corpus / ".ragx" / "index.db")) as db, db:
        db.execute(f"UPDATE {table} SET {name} = ?", (value,))
    (corpus / ".ragx" / "index.seal").unlink()
    for line in (("query", "zebra"), ("status",), ("read", "order.eml"), ("index",)):
        found = ask(*line, cwd=corpus, status=None)
        assert found.get("error", {}).get("code", "index_damaged") == "index_damaged"
    ask("index", "--full", cwd=corpus)
    assert ask("query", "zebra", cwd=corpus)["results"]


def test_rows_of_a_table_are_found_and_shown_with_their_columns(
    make_corpus: Make, ask: Ask, ragx_inline: Run
) -> None:
    rows = "".join(
        f"<table:table-row><table:table-cell office:value-type='string'><text:p>{a}</text:p>"
        f"</table:table-cell><table:table-cell office:value-type='float' office:value='{b}'>"
        f"<text:p>{b}</text:p></table:table-cell></table:table-row>"
        for a, b in [("animal", "weight"), *((f"zebra number {n}", n) for n in range(400))]
    ).replace("'float' office:value='weight'", "'string'")
    root = make_corpus({"herd.ods": spreadsheet(rows)})
    ask("index", cwd=root)
    chunk = ask("query", "zebra number 399", cwd=root)["results"][0]["chunks"][0]
    assert chunk["heading"][-1] == "| animal | weight"
    assert chunk["locator"]["sheet"] == "Herd"
    assert chunk["locator"]["end"] == 401
    assert chunk["locator"]["label"].startswith("sheet Herd, rows ")
    assert "| animal | weight" in ragx_inline("query", "zebra number 399", cwd=root).stdout


def spreadsheet(rows: str) -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f"<table:table table:name='Herd'>{rows}</table:table>"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return file.getvalue()


def test_a_limit_is_that_of_what_a_file_holds_not_of_its_name(make_corpus: Make, ask: Ask) -> None:
    root = make_corpus(
        {"log.pdf": "plain text\n" * 400, "herd.ipynb": HERD},
        settings="[corpus]\nmax_file_bytes = 3000\n[documents]\nmax_file_bytes = 5000\n",
    )
    (root / "herd.ipynb").write_text(HERD + " " * (6000 - len(HERD)))
    assert ask("index", cwd=root)["skipped"]["too_large"] == 2
    done = ask("index", "--max-file-bytes", "9000", cwd=root)
    assert (done["files_indexed"], done["skipped"].get("too_large")) == (2, None)


def test_limits_are_settings_and_what_is_left_out_is_said(
    make_corpus: Make, ask: Ask, ragx_inline: Run
) -> None:
    root = make_corpus(
        {"herd.ipynb": HERD, "large.eml": MAIL + LONG * 20},
        settings="[documents]\nmax_chars = 1000\nmax_file_bytes = 9000\n",
    )
    done = ask("index", cwd=root)
    assert (done["files_indexed"], done["skipped"]["too_large"]) == (1, 1)
    (part,) = ask("inspect", "file", "herd.ipynb", cwd=root)["skipped_parts"]
    assert part["what"] == "rest"
    assert "1,000 characters" in part["note"]
    assert "not indexed" in ragx_inline("index", "--full", "-v", cwd=root).stderr
    assert "9.0 KB for documents" in ragx_inline("status", cwd=root).stdout
    (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    assert ask("index", cwd=root)["files_indexed"] == 2
    assert ask("inspect", "file", "herd.ipynb", cwd=root)["skipped_parts"] == []


def test_a_dry_run_reads_documents_and_stores_nothing(corpus: Path, ask: Ask) -> None:
    done = ask("index", "--dry-run", cwd=corpus)
    assert (done["files"], done["by_kind"]) == (3, {"docs": 3})
    assert not (corpus / ".ragx").exists()
    ask("index", cwd=corpus)
    assert ask("index", "--dry-run", cwd=corpus)["files_unchanged"] == 3


def test_doctor_compares_documents_too(corpus: Path, ask: Ask) -> None:
    ask("index", cwd=corpus)
    checks = {one["name"]: one for one in ask("doctor", "--deep", cwd=corpus)["checks"]}
    assert checks["index"]["status"] == "ok", checks["index"]


PLUGIN = """
from ragx.documents.formats.base import Block, Extracted, Place, damaged


class Drawing:
    name = "drawing"
    version = "{version}"
    extensions = ("dwgx",)

    def extract(self, raw, limits):
        print("noise on standard output")
        if raw == b"bad":
            raise damaged("it is no drawing")
        if raw == b"crash":
            import os
            os._exit(3)
        text = raw.decode()
        return Extracted((Block("text", text + " v{version}", Place("frame", 7, "Roof")),))


drawing = Drawing()
"""


def test_an_extractor_of_somebody_else(make_corpus: Make, ragx_cli: Run, tmp_path: Path) -> None:
    """A package with an entry point, in a process of its own as it would be installed."""
    site = tmp_path / "site"
    info = site / "drawing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ragx.extractors]\ndrawing = drawing:drawing\n")
    (site / "drawing.py").write_text(PLUGIN.format(version="1"))
    root = make_corpus(
        {"house.dwgx": "the roof is slate", "bad.dwgx": "bad", "crash.dwgx": "crash"},
        settings='[corpus]\ninclude = ["*.dwgx"]\n',
    )
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*args: str, env: dict[str, str] | None = None) -> dict[str, Any]:
        done = ragx_cli(*args, "--json", cwd=root, env=env or {"PYTHONPATH": path})
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    done = run("index")
    codes = {one["file"]: one["code"] for one in done["failed"]}
    assert codes == {"bad.dwgx": "damaged", "crash.dwgx": "extraction_crashed"}
    chunk = run("query", "slate")["results"][0]["chunks"][0]
    assert chunk["locator"]["kind"] == "frame"
    assert (chunk["locator"]["number"], chunk["locator"]["name"]) == (7, "Roof")
    assert chunk["text"].endswith("v1")
    assert run("index")["failed"][1]["code"] == "extraction_crashed"
    (site / "drawing.py").write_text(PLUGIN.format(version="2"))
    assert run("status")["drift"]["changed"] >= 1
    run("index")
    assert run("query", "slate")["results"][0]["chunks"][0]["text"].endswith("v2")
    # Without it the file is text again, as it was before, and with it no longer.
    plain = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    run("index", env=plain)
    assert run("query", "slate", env=plain)["results"][0]["chunks"][0]["locator"] is None
    run("index")
    assert run("query", "slate")["results"][0]["chunks"][0]["locator"]["name"] == "Roof"


def test_reading_documents_loads_nothing_until_there_is_one(make_corpus: Make) -> None:
    """`import ragx` is no slower for what the extra brings, nor is a run over text files."""
    probe = (
        "import sys\nfrom ragx.shells.cli.main import main\nstatus = main(sys.argv[1:])\n"
        "heavy = {'pypdfium2', 'selectolax', 'xml.etree.ElementTree'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    root = make_corpus({"plan.md": PLAN, "order.eml": MAIL})
    for line in (("index",), ("query", "fence"), ("status",)):
        done = subprocess.run(
            [sys.executable, "-c", probe, *line], cwd=root, capture_output=True, text=True
        )
        assert done.stderr.rstrip().endswith("[]"), done.stderr
