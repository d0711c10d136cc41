"""`ragx agents`, and what an agent's usual loop costs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import ragx.providers
from ragx.api.agents import BEGIN, BLOCK, END

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden")
MARKED = f"{BEGIN}\n{BLOCK}{END}"


@pytest.fixture
def root(make_corpus: MakeCorpus) -> Path:
    return make_corpus({"a.md": "An okapi.\n"})


def write(ask: Ask, root: Path) -> tuple[str, str]:
    found = ask("agents", "--write", cwd=root)
    return found["file"], found["action"]


def test_it_shows_what_readme_has() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = "".join(f"    {line}\n" for line in BLOCK.splitlines())
    assert shown in readme


def test_without_write_nothing_is_written(root: Path, ragx_inline: RunCli, ask: Ask) -> None:
    before = sorted(root.rglob("*"))
    done = ragx_inline("agents", cwd=root)
    assert done.returncode == 0
    assert BLOCK in done.stdout
    found = ask("agents", cwd=root)
    assert (found["file"], found["action"], found["block"]) == (None, "none", BLOCK)
    assert sorted(root.rglob("*")) == before


def test_the_clients_can_start_it(root: Path, ask: Ask) -> None:
    clients = {client["name"]: client for client in ask("agents", cwd=root)["clients"]}
    assert list(clients) == ["Claude Desktop", "Claude Code", "Cursor"]
    server = clients["Claude Desktop"]["settings"]["mcpServers"]["ragx"]
    assert Path(server["command"]).is_absolute()
    assert server["args"][-3:] == ["mcp", "--root", str(root)]
    done = subprocess.run(
        [server["command"], *server["args"]],
        input=b"",
        capture_output=True,
        cwd="/",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert clients["Claude Code"]["file"] == ".mcp.json"
    assert clients["Claude Code"]["command"].endswith("-- ragx mcp")
    assert "${workspaceFolder}" in clients["Cursor"]["settings"]["mcpServers"]["ragx"]["args"]


def test_a_new_file_holds_the_block_alone(root: Path, ask: Ask) -> None:
    assert write(ask, root) == ("AGENTS.md", "created")
    assert (root / "AGENTS.md").read_bytes() == f"{MARKED}\n".encode()
    assert write(ask, root) == ("AGENTS.md", "unchanged")


def test_claude_md_is_taken_if_only_that_exists(root: Path, ask: Ask) -> None:
    (root / "CLAUDE.md").write_text("# Rules\n")
    assert write(ask, root) == ("CLAUDE.md", "added")
    assert not (root / "AGENTS.md").exists()
    (root / "AGENTS.md").write_text("# More rules\n")
    assert write(ask, root) == ("AGENTS.md", "added")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", f"{MARKED}\n"),
        (b"# Mine", f"# Mine\n\n{MARKED}\n"),
        (b"# Mine\n\n\n", f"# Mine\n\n\n\n{MARKED}\n"),
        (b"\xef\xbb\xbf# Mine\r\n", "\ufeff# Mine\r\n\r\n" + f"{MARKED}\n".replace("\n", "\r\n")),
        ("\ufeff# Ä\n".encode("utf-16-le"), f"\ufeff# Ä\n\n{MARKED}\n"),
        ("\ufeff# Ä\r\n".encode("utf-16-be"), f"\ufeff# Ä\n\n{MARKED}\n".replace("\n", "\r\n")),
        (b"# Mine\rold Mac\r", f"# Mine\nold Mac\n\n{MARKED}\n".replace("\n", "\r")),
        (f"A\n{BEGIN}\nold\n{END} tail\nB".encode(), f"A\n{MARKED} tail\nB"),
        (f"A\r\n{BEGIN}{END}\r\nB".encode(), f"A\n{MARKED}\nB".replace("\n", "\r\n")),
        (f"Put there by hand:\n{BLOCK}\nB\n".encode(), f"Put there by hand:\n{MARKED}\n\nB\n"),
    ],
)
def test_everything_else_keeps_every_byte(root: Path, ask: Ask, before: bytes, after: str) -> None:
    path = root / "AGENTS.md"
    path.write_bytes(before)
    encoding = "utf-16-le" if before.startswith(b"\xff\xfe") else "utf-8"
    encoding = "utf-16-be" if before.startswith(b"\xfe\xff") else encoding
    assert write(ask, root)[1] in ("added", "updated")
    assert path.read_bytes() == after.encode(encoding)
    assert write(ask, root) == ("AGENTS.md", "unchanged")
    assert path.read_bytes() == after.encode(encoding)


def test_bytes_that_are_no_text_stay(root: Path, ask: Ask) -> None:
    path = root / "AGENTS.md"
    path.write_bytes(b"\xff\x00\xc3 mine\n")
    path.chmod(0o640)
    write(ask, root)
    assert path.read_bytes() == b"\xff\x00\xc3 mine\n\n" + f"{MARKED}\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "text",
    [
        f"{BEGIN}\nno end\n",
        f"{END}\n{BEGIN}\n",
        f"{MARKED}\n{MARKED}\n",
        f"{BEGIN}\n{BEGIN}\n{END}\n",
        "## Searching this repository\nIn other words.\n",
    ],
)
def test_what_to_replace_must_be_clear(root: Path, ask: Ask, text: str) -> None:
    path = root / "AGENTS.md"
    path.write_text(text)
    found = ask("agents", "--write", cwd=root, status=2)
    assert found["error"]["code"] == "bad_markers"
    assert "ragx agents --write" in found["error"]["hint"]
    assert path.read_text() == text


def test_a_link_is_followed_inside_the_corpus_only(root: Path, ask: Ask, tmp_path: Path) -> None:
    outside = tmp_path / "theirs.md"
    outside.write_text("theirs\n")
    (root / "AGENTS.md").symlink_to(outside)
    assert ask("agents", "--write", cwd=root, status=2)["error"]["code"] == "linked_config"
    assert outside.read_text() == "theirs\n"
    (root / "AGENTS.md").unlink()
    (root / "CLAUDE.md").write_text("ours\n")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    assert write(ask, root) == ("AGENTS.md", "added")
    assert (root / "CLAUDE.md").read_text() == f"ours\n\n{MARKED}\n"
    assert (root / "AGENTS.md").is_symlink()
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to("nowhere.md")
    assert ask("agents", "--write", cwd=root, status=2)["error"]["code"] == "config"


def test_the_usual_loop_of_an_agent_fits_2500_tokens(tmp_path: Path, ragx_inline: RunCli) -> None:
    """Status, index, query, read: all that ragx prints, by the shipped tokenizer's own count."""
    assets = Path(ragx.providers.__file__).with_name("assets")
    tokenizer = Tokenizer.from_str((assets / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    root = tmp_path / "corpus"
    shutil.copytree(GOLDEN / "corpus", root)
    assert ragx_inline("init", "--yes", cwd=root).returncode == 0
    said = []

    def step(*args: str, status: int = 0) -> str:
        done = ragx_inline(*args, cwd=root)
        assert done.returncode == status, done.stderr
        said.append(done.stdout + done.stderr)
        return done.stdout

    step("status", status=1)
    step("index")
    step("status")
    found = step("query", "how often are backups made, and where do they go?", "--brief")
    assert found.startswith("notes/")
    place = found.split("\n")[0].split("  ")[0]
    step("read", place)
    assert place.split(":")[0] in said[-1]
    counts = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in said]
    assert all(counts)
    assert sum(counts) < 2500


def test_the_documents_name_their_client_settings_as_json(root: Path, ragx_inline: RunCli) -> None:
    text = ragx_inline("agents", cwd=root).stdout
    shown = text.split(".mcp.json\n")[1].split("\n\n")[0]
    assert json.loads(shown[shown.index("{") :])["mcpServers"]["ragx"]["args"] == ["mcp"]
