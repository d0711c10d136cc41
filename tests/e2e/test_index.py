"""`ragx index` through the real command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Put = Callable[[Path, Mapping[str, str | bytes]], None]
Environment = Callable[..., dict[str, str]]

NOTES = {
    "a.md": "# Alpha\n\nThe zebra grazes.\n",
    "sub/b.md": "# Beta\n\nA lion sleeps.\n",
    "c.py": "def count(zebra):\n    return len(zebra)\n",
}


def names(answer: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in answer["results"]}


def test_the_first_run_and_the_next(ragx_cli: RunCli, make_corpus: MakeCorpus) -> None:
    root = make_corpus(NOTES)
    done = ragx_cli("index", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "ragx.index.v1"
    assert (document["ok"], document["files_indexed"], document["files_unchanged"]) == (True, 3, 0)
    assert document["failed"] == []
    done = ragx_cli("index", cwd=root)
    assert done.returncode == 0
    assert "nothing changed" in done.stdout or "3 files unchanged" in done.stdout
    done = ragx_cli("index", "--quiet", cwd=root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_corpus_the_fix_is_named(ragx_inline: RunCli, tmp_path: Path) -> None:
    for command in (["index"], ["query", "x"], ["status"], ["inspect", "file", "a.md"]):
        done = ragx_inline(*command, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "ragx init" in done.stderr
    done = ragx_inline("index", "--root", str(tmp_path / "nope"), cwd=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / ".ragx").exists()


def test_an_empty_corpus(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({})
    document = ask("index", cwd=root)
    assert (document["ok"], document["files_indexed"]) == (True, 0)
    assert ask("index", cwd=root)["ok"]
    assert ask("status", cwd=root)["files"] == 0
    assert ask("query", "zebra", cwd=root, status=1)["results"] == []


def test_named_files_only_however_they_are_spelled(
    make_corpus: MakeCorpus, ask: Ask, put: Put
) -> None:
    """HOSTILE: `src`, `./src`, absolute path: one identity."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    for i, spelling in enumerate(
        ["sub/b.md", "./sub/b.md", "sub/../sub//b.md", str(root / "sub/b.md"), "sub", "./sub/"]
    ):
        put(root, {"sub/b.md": f"# Beta\n\nquagga{i}\n", "a.md": f"# Alpha\n\nokapi{i}\n"})
        document = ask("index", spelling, cwd=root)
        assert document["files_indexed"] == 1, spelling
        assert names(ask("query", f"quagga{i}", cwd=root)) == {"sub/b.md"}
        assert ask("query", f"okapi{i}", cwd=root, status=1)["results"] == []
    put(root, {"sub/b.md": "# Beta\n\ngnu\n"})
    ask("index", "b.md", cwd=root / "sub")  # relative to where one stands
    assert names(ask("query", "gnu", cwd=root)) == {"sub/b.md"}
    assert ask("status", cwd=root)["files"] == 3


def test_a_named_file_that_is_gone_is_removed(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    (root / "a.md").unlink()
    assert ask("index", "a.md", cwd=root)["files_deleted"] == 1
    assert names(ask("query", "zebra", cwd=root)) == {"c.py"}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["nope.md"], "no_such_file"),
        (["LICENSE.md"], "no_such_file"),
        (["../outside.md"], "usage"),
        ([""], "usage"),
        (["--force", "nope.md"], "no_such_file"),
        (["--full", "a.md"], "usage"),
        (["--max-files", "2"], "too_many_files"),
        (["--max-files", "-1"], "usage"),
        (["--max-file-bytes", "0"], "usage"),
        (["--no-such-flag"], "usage"),
        (["--top"], "usage"),
    ],
)
def test_refusals(make_corpus: MakeCorpus, ask: Ask, args: list[str], code: str) -> None:
    root = make_corpus({**NOTES, "LICENSE.md": "free\n"})
    (root.parent / "outside.md").write_text("x")
    document = ask("index", *args, cwd=root, status=2)
    assert (document["schema"], document["error"]["code"]) == ("ragx.error.v1", code)
    assert document["error"]["message"]


def test_a_limit_is_said_and_leaves_the_index_alone(make_corpus: MakeCorpus, ask: Ask) -> None:
    """SPEC 4: A limit is enforced by message, never by silent truncation of the corpus."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    (root / "d.md").write_text("one more zebra\n")
    document = ask("index", "--max-files", "3", cwd=root, status=2)
    assert document["error"]["hint"]
    assert ask("status", cwd=root)["files"] == 3


def test_dry_run_says_and_does_nothing(make_corpus: MakeCorpus, ask: Ask) -> None:
    """HOSTILE: `index --dry-run` says files by kind, bytes, chunks, tokens, time."""
    root = make_corpus(NOTES)
    before = sorted(path.name for path in root.iterdir())
    document = ask("index", "--dry-run", cwd=root)
    assert document["files"] == 3
    assert document["by_kind"] == {"code": 1, "docs": 2}
    assert document["bytes"] == sum(len(text.encode()) for text in NOTES.values())
    assert document["chunks"] == 3
    assert document["tokens"] > 0
    assert sorted(path.name for path in root.iterdir()) == before
    report = ask("index", cwd=root)
    assert report["files_indexed"] == document["files"]
    assert report["chunks_added"] == document["chunks"]
    (root / "a.md").write_text("# Alpha\n\nnow a giraffe\n")
    (root / "c.py").unlink()
    document = ask("index", "--dry-run", "-v", cwd=root)
    assert (document["files"], document["files_to_delete"]) == (1, 1)
    report = ask("index", cwd=root)
    assert (report["files_indexed"], report["files_deleted"]) == (1, 1)


def test_a_dry_run_leaves_out_what_a_run_leaves_out(make_corpus: MakeCorpus, ask: Ask) -> None:
    token = "ghp_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW2xY4"
    root = make_corpus({**NOTES, "secret.md": f"token {token}\n", "bin.md": b"\0\1", ".env": "A=1"})
    dry = ask("index", "--dry-run", cwd=root)
    report = ask("index", cwd=root)
    assert dry["files"] == report["files_indexed"] == 3
    assert dry["skipped"] == report["skipped"]
    again = ask("index", "--dry-run", cwd=root)
    assert (again["files"], again["files_unchanged"]) == (0, 3)


def test_verbose_lists_what_was_left_out(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli
) -> None:
    root = make_corpus(
        {**NOTES, ".env": "KEY=1", "x.bin": "x", "LICENSE": "free", "old.md": b"caf\xe9\n"}
    )
    document = ask("index", "-v", cwd=root)
    skipped = {item["file"]: item["reason"] for item in document["skipped_files"]}
    assert skipped[".env"] == "secret"
    assert skipped["x.bin"] == "not_included"
    assert skipped["LICENSE"] == "excluded"
    assert document["skipped"] == {
        reason: list(skipped.values()).count(reason) for reason in sorted(set(skipped.values()))
    }
    assert [note["file"] for note in document["notes"]] == ["old.md"]
    done = ragx_inline("index", "-v", "--full", cwd=root)
    assert ".env" in done.stderr
    assert "old.md" in done.stderr


def test_policy_skips_do_not_change_the_exit_code(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus({"a.md": "zebra\n", "b.md": b"\0\1\2", ".env": "A=1", "c.md": "x" * 300})
    os.symlink("a.md", root / "link.md")
    document = ask("index", "--max-file-bytes", "100", cwd=root, status=0)
    assert document["ok"] is True
    assert (
        document["skipped"]
        == {
            "binary": 1,
            "excluded": 1,
            "secret": 1,
            "symlink": 1,
            "too_large": 1,
        }
        or {"binary": 1, "secret": 1, "symlink": 1, "too_large": 1}.items()
        <= document["skipped"].items()
    )


def test_partial_failure_is_exit_2_with_the_whole_document(
    make_corpus: MakeCorpus, ask: Ask, ragx_inline: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_corpus(NOTES)
    real = os.open

    def deny(path: Any, *args: Any, **kwargs: Any) -> int:
        if Path(path).name == "b.md":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", deny)
        document = ask("index", cwd=root, status=2)
        assert document["schema"] == "ragx.index.v1"
        assert document["ok"] is False
        assert document["failed"][0]["file"] == "sub/b.md"
        assert document["failed"][0]["code"] == "unreadable"
        assert document["files_indexed"] == 2
        done = ragx_inline("index", cwd=root)
        assert done.returncode == 2
        assert "sub/b.md" in done.stderr
    assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}
    status = ask("status", cwd=root)
    assert [item["file"] for item in status["failed"]] == ["sub/b.md"]
    assert ask("index", cwd=root)["failed"] == []


def test_force_and_full(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    document = ask("index", "--force", "a.md", cwd=root)
    assert (document["files_indexed"], document["chunks_added"]) == (1, 0)
    document = ask("index", "--full", cwd=root)
    assert (document["files_indexed"], document["chunks_added"], document["chunks_deleted"]) == (
        3,
        0,
        0,
    )


def test_changed_is_an_old_name_of_the_default(
    make_corpus: MakeCorpus, ragx_inline: RunCli
) -> None:
    root = make_corpus(NOTES)
    done = ragx_inline("index", "--changed", "--json", cwd=root)
    assert done.returncode == 0
    assert json.loads(done.stdout)["files_indexed"] == 3
    assert "--changed" in done.stderr


def test_settings_that_no_longer_fit_stop_with_both_values(
    make_corpus: MakeCorpus, ask: Ask
) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    ask("config", "set", "chunking.size_tokens", "100", cwd=root)
    document = ask("index", cwd=root, status=2)
    assert document["error"]["code"] == "manifest_mismatch"
    assert "chunking.size_tokens" in document["error"]["message"]
    assert "--full" in document["error"]["hint"]
    assert "chunking.size_tokens" in ask("status", cwd=root)["settings_differ"]
    assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}  # the old index answers
    ask("index", "--full", cwd=root)
    assert ask("status", cwd=root)["settings_differ"] == ""


def test_home_is_refused_before_any_work(ragx_inline: RunCli, home: Path) -> None:
    """HOSTILE: Started in `$HOME` or `/`: refuse, or ask, before hours of work."""
    (home / ".ragx").mkdir()
    (home / "a.md").write_text("zebra\n")
    done = ragx_inline("index", "--json", cwd=home)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "broad_root"
    assert "--yes" in json.loads(done.stdout)["error"]["hint"]
    assert list((home / ".ragx").iterdir()) == []


def test_ragx_never_writes_to_the_corpus(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*") if p.is_file()}
    ask("index", cwd=root)
    ask("query", "zebra", cwd=root)
    ask("status", cwd=root)
    shutil.rmtree(root / ".ragx")
    after = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*") if p.is_file()}
    assert after == before


# Damage and concurrency.


def test_a_second_run_at_once_is_told(make_corpus: MakeCorpus, ask: Ask) -> None:
    """HOSTILE: Two `index` runs at once: second writer told clearly."""
    from ragx.store.sqlite import SqliteWriter

    root = make_corpus(NOTES)
    ask("index", cwd=root)
    writer = SqliteWriter(root)
    try:
        document = ask("index", cwd=root, status=2)
        assert document["error"]["code"] == "index_busy"
        assert str(os.getpid()) in document["error"]["message"]
        assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}
        assert ask("status", cwd=root)["files"] == 3
    finally:
        writer.close()


def test_eight_cold_queries_at_once(
    make_corpus: MakeCorpus, ask: Ask, ragx_environment: Environment
) -> None:
    """HOSTILE: eight cold `query` runs at once on a fresh index."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "ragx", "query", "zebra", "--json"],
            cwd=root, env=ragx_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(8)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=60) for process in processes]
    assert {process.returncode for process in processes} == {0}
    assert len({out for out, _ in outputs}) == 1
    assert {err for _, err in outputs} == {b""}


@pytest.mark.parametrize("how", ["empty", "half", "garbage", "page"])
@pytest.mark.parametrize("name", ["index.db", "writer.lock", ".gitignore"])
def test_each_file_of_the_index_damaged_in_turn(
    make_corpus: MakeCorpus, ask: Ask, name: str, how: str
) -> None:
    """HOSTILE: Truncate or corrupt each file under .ragx/ in turn: a clear message, a way back."""
    root = make_corpus(
        {**NOTES, **{f"f{i}.md": f"# F{i}\n\n{'okapi ' * 300}\n" for i in range(20)}}
    )
    ask("index", cwd=root)
    path = root / ".ragx" / name
    raw = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "half": raw[: len(raw) // 2],
            "garbage": b"\xff" * len(raw),
            "page": raw[:40960] + b"\xff" * 4096 + raw[45056:],
        }[how]
    )
    for command in (["query", "zebra"], ["status"], ["index"]):
        document = ask(*command, cwd=root, status=None)
        if "error" in document:
            assert document["error"]["code"] in ("index_damaged", "index_missing")
            assert "ragx index" in document["error"]["hint"]
    assert ask("index", "--full", cwd=root)["ok"]
    assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}


def test_no_ragx_directory_can_be_made(make_corpus: MakeCorpus, ask: Ask) -> None:
    root = make_corpus(NOTES)
    (root / ".ragx").write_text("in the way")
    document = ask("index", cwd=root, status=2)
    assert document["error"]["code"] in ("io_error", "read_only", "store")
    assert ask("query", "zebra", cwd=root, status=2)["error"]["code"] == "index_missing"


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("unshare"), reason="needs unshare")
def test_a_read_only_disk(make_corpus: MakeCorpus, ask: Ask, ragx_environment: Environment) -> None:
    """HOSTILE: Read-only index directory: search still works; indexing says why it cannot."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    (root / "a.md").write_text("# Alpha\n\nokapi\n")
    script = (
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" "$1" || exit 77\n'
        'cd "$1" && "$2" -m ragx query zebra --json && "$2" -m ragx status --json'
        ' && "$2" -m ragx index --json'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(root), sys.executable],
        env=ragx_environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip("no right to mount here")
    found, status, refused = map(json.loads, done.stdout.splitlines())
    assert names(found) == {"a.md", "c.py"}
    assert status["files"] == 3
    assert refused["error"]["code"] == "read_only"
    assert done.returncode == 2


def until_it_works(root: Path, process: subprocess.Popen[bytes]) -> None:
    """A signal while Python starts is not ragx's to answer; its lock shows that it works."""
    lock = root / ".ragx" / "writer.lock"
    while not (lock.exists() and lock.read_text() == str(process.pid)):
        assert process.poll() is None, "the run was too short to be interrupted"
        time.sleep(0.01)
    time.sleep(0.2)  # into the midst of it


@pytest.mark.parametrize("n_signals", [1, 2])
def test_an_interrupt_leaves_the_index_as_it_was(
    make_corpus: MakeCorpus, ask: Ask, put: Put, ragx_environment: Environment, n_signals: int
) -> None:
    """HOSTILE: Ctrl-C in each phase, twice: under a second, index intact."""
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    text = "".join(f"# Part {i}\n\n{'okapi gnu quagga ' * 60}{i}\n\n" for i in range(200))
    put(root, {f"big{i}.md": text + str(i) for i in range(60)})
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "index", "--json"],
        cwd=root, env=ragx_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until_it_works(root, process)
    started = time.monotonic()
    for _ in range(n_signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - started < 10  # a second, on a machine that is not busy
    # A second one may come when Python is past all handlers: a shell says 130 of that, too.
    assert process.returncode in ((130,) if n_signals == 1 else (130, -signal.SIGINT))
    assert out == b""
    assert b"Traceback" not in err
    assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}
    status = ask("status", cwd=root)
    assert (status["files"], status["drift"]["new"]) == (3, 60)
    (root / "big0.md").rename(root / "last.md")
    for i in range(1, 60):
        (root / f"big{i}.md").unlink()
    assert ask("index", cwd=root)["files_indexed"] == 1


def test_a_killed_run_leaves_the_index_as_it_was(
    make_corpus: MakeCorpus, ask: Ask, put: Put, ragx_environment: Environment
) -> None:
    root = make_corpus(NOTES)
    ask("index", cwd=root)
    text = "".join(f"# Part {i}\n\n{'okapi gnu quagga ' * 60}{i}\n\n" for i in range(200))
    put(root, {f"big{i}.md": text + str(i) for i in range(60)})
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "index", "--json"],
        cwd=root, env=ragx_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until_it_works(root, process)
    process.kill()
    process.wait()
    assert names(ask("query", "zebra", cwd=root)) == {"a.md", "c.py"}
    for i in range(60):
        (root / f"big{i}.md").unlink()
    assert ask("index", cwd=root)["ok"]


# With the real model.


def test_the_built_in_model_end_to_end(ragx_cli: RunCli, make_corpus: MakeCorpus, put: Put) -> None:
    root = make_corpus(
        {
            "pets.md": "# Pets\n\nA kitten naps on the warm windowsill all afternoon.\n",
            "tax.md": "# Tax\n\nThe revenue office demands the quarterly return by Friday.\n",
            "long.txt": "word soup with many different words " * 400,
        },
        provider="builtin",
    )
    done = ragx_cli("index", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert first["embedded"] >= first["chunks_added"] - 1
    done = ragx_cli("query", "a sleeping cat", "--json", "--mode", "vector", "--top", "1", cwd=root)
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["results"]
    assert entry["file"] == "pets.md"
    shutil.copytree(root, root.parent / "clone")
    os.utime(root.parent / "clone" / "pets.md")
    done = ragx_cli("index", "--json", cwd=root.parent / "clone")
    again = json.loads(done.stdout)
    assert (again["files_unchanged"], again["embedded"]) == (3, 0)
    done = ragx_cli("query", "a sleeping cat", cwd=root.parent / "clone")
    assert done.returncode == 0
    assert "pets.md" in done.stdout
    assert done.stderr == ""
