"""The guarded process: whatever a document does to what reads it, the next one is read."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragx.documents.formats import registry
from ragx.documents.formats.base import Extracted, ExtractLimits, Place
from ragx.documents.guard import Guard
from ragx.errors import ExtractionError, MissingDependency

PATIENCE_S = 60.0
LIMITS = ExtractLimits(timeout_s=30, max_memory_bytes=256 << 20)
HASTY = ExtractLimits(timeout_s=1, max_memory_bytes=256 << 20)
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="holds on Linux only")
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

# One extractor that does what its document says.
ACROBAT = r"""
import ctypes, hashlib, os, signal, struct, subprocess, sys, threading

from ragx.documents.formats import base
from ragx.documents.formats.base import Block, Extracted, Link, Place, SkippedPart

PAGE = Place("page", 1)


def hang():
    while True:
        pass


def hang_in_c():
    # Holds the interpreter all the while: no other thread of this process runs.
    ctypes.PyDLL(None).sleep(3600)


def recurse(deeper=None):
    return recurse() + 1


def allocate():
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


def raise_(exc):
    raise exc


def pipe_of_ragx():
    import fcntl

    # By number, as code that has taken over the process would find it.
    for fd in map(str, range(3, 20)):
        link = f"/proc/self/fd/{fd}"
        if os.path.exists(link) and os.readlink(link).startswith("pipe:"):
            if fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_WRONLY:
                return int(fd)


def flood():
    fd = pipe_of_ragx()
    while True:
        os.write(fd, struct.pack(">II", 2, 1 << 20) + b"{}" + bytes(1 << 20))


def fork_and_die():
    if os.fork() == 0:
        signal.pause()
    os._exit(4)


def start_and_hang():
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with open(__file__ + ".new", "w") as file:
        file.write(str(child.pid))
    os.rename(__file__ + ".new", __file__ + ".pid")
    hang()


def text(words, **more):
    return Extracted((Block("text", words, PAGE),), **more)


def if_new(otherwise):
    return text("by a new process") if SERVED == [1] else otherwise()


SERVED = [0]
ACTS = {
    "worn": lambda: if_new(lambda: os._exit(5)),
    "leaky": lambda: if_new(lambda: raise_(MemoryError())),
    "hang": hang,
    "hang in C": hang_in_c,
    "recurse": recurse,
    "allocate": allocate,
    "no memory in a library": lambda: raise_(ValueError("Memory allocation failed : growing")),
    "exit": lambda: os._exit(3),
    "leave": lambda: sys.exit(2),
    "interrupt": lambda: raise_(KeyboardInterrupt()),
    "segfault": lambda: (
        print("on the way\x1b[31m out", file=sys.stderr, flush=True),
        os.kill(os.getpid(), signal.SIGSEGV),
    ),
    "close": lambda: (os.close(pipe_of_ragx()), hang()),
    "garbage": lambda: (os.write(pipe_of_ragx(), b"\xff" * 100), hang()),
    "half": lambda: (os.write(pipe_of_ragx(), struct.pack(">II", 10, 10) + b"{"), os._exit(0)),
    "not JSON": lambda: (os.write(pipe_of_ragx(), struct.pack(">II", 2, 0) + b"}{"), hang()),
    "no object": lambda: (os.write(pipe_of_ragx(), struct.pack(">II", 2, 0) + b"[]"), hang()),
    "nothing": lambda: (os.write(pipe_of_ragx(), struct.pack(">II", 2, 2) + b"{}[]"), hang()),
    "flood": flood,
    "fork": fork_and_die,
    "start": start_and_hang,
    "print": lambda: (print("x" * 100_000), os.write(1, b"y" * 100_000), text("printed"))[-1],
    "chatter": lambda: (print("z" * 3_000_000, file=sys.stderr), text("said"))[-1],
    "read": lambda: text(repr(sys.stdin.read())),
    "variables": lambda: text("\n".join(sorted(os.environ))),
    "where": lambda: text(os.getcwd()),
    "process": lambda: text(f"{os.getpid()} {os.getsid(0)}"),
    "write": lambda: open(__file__ + ".big", "wb").write(bytes(64 << 20)),
    "order": lambda: text(" ".join({str(n) for n in range(100)})),
    "none": lambda: None,
    "wrong": lambda: Extracted((Block("picture", "x", PAGE),)),
    "number": lambda: Extracted((Block("text", 5, PAGE),)),
    "link": lambda: Extracted((Block("text", "abc", PAGE, links=(Link(1, 9, "t"),)),)),
    "many": lambda: Extracted((Block("text", "x", PAGE),) * 100_001),
    "long": lambda: text("x" * 2_000_001),
    "most": lambda: text("\u65e5" * 2_000_000),
    "untidy": lambda: Extracted(
        (Block("text", "a\x00b\x1b", PAGE), Block("text", " \n", PAGE)),
        title="two\nlines" + "x" * 5000,
        date="2024-13-40",
        tags=("a\x07b",),
        skipped_parts=(SkippedPart("images", 2),),
    ),
    "surrogate": lambda: text("a\ud800b"),
    "encrypted": lambda: raise_(base.encrypted()),
    "no text": lambda: raise_(base.no_text("3 pages of images")),
    "too big": lambda: raise_(base.too_big("it unpacks to too much")),
    "damaged": lambda: raise_(base.damaged("it is cut off\nhere")),
    "own code": lambda: raise_(base.ExtractionError("no", code="index_damaged")),
    "library": lambda: raise_(KeyError("no part\nwith details")),
    "silent": lambda: raise_(ValueError()),
}


class Acrobat:
    name = "acrobat"
    version = "7"
    extensions = ("acr", "tar.acr")

    def extract(self, raw, limits):
        SERVED[0] += 1
        if raw.startswith(b"\0"):
            return text(hashlib.sha256(raw).hexdigest())
        return ACTS[raw.decode()]()


acrobat = Acrobat()
"""


def install(directory: Path, name: str, source: str, *entries: str) -> None:
    """Make a package with entry points, as pip leaves it."""
    (directory / f"{name}.py").write_text(source)
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(entries)
    (info / "entry_points.txt").write_text(f"[{registry.PLUGIN_GROUP}]\n{lines}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on the path of this process and of its children; what lies in it is found."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    registry.plugins.cache_clear()
    yield tmp_path
    registry.plugins.cache_clear()


@pytest.fixture
def acrobat(packages: Path) -> None:
    install(packages, "acrobats", ACROBAT, "acrobat = acrobats:acrobat")


@pytest.fixture
def guard(acrobat: None) -> Iterator[Guard]:
    with Guard(LIMITS) as guard:
        yield guard


@pytest.fixture
def hasty(acrobat: None) -> Iterator[Guard]:
    """A guard with little patience. Its first document has started the process already."""
    with Guard(HASTY) as guard:
        guard.describe()
        yield guard


def fault_of(guard: Guard, document: str) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        guard.extract("acrobat", document.encode())
    return caught.value


def text_of(guard: Guard, document: str) -> str:
    (block,) = guard.extract("acrobat", document.encode()).blocks
    return block.text


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.is_file() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


def comes(path: Path) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return path.exists()


def is_gone(pid: int) -> bool:
    """Whether a child of this process has ended and been waited for: no zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_what_an_extractor_gives_arrives_whole(guard: Guard):
    extracted = guard.extract("acrobat", b"print")
    assert extracted.blocks[0].text == "printed"
    assert extracted.blocks[0].place == Place("page", 1)


def test_one_process_reads_document_after_document(guard: Guard):
    first = text_of(guard, "process").split()[0]
    assert {text_of(guard, "process").split()[0] for _ in range(20)} == {first}
    assert int(first) == guard.worker_pid


def test_no_process_is_started_before_there_is_a_document(guard: Guard):
    assert guard.worker_pid == 0


def test_a_process_is_replaced_in_time(guard: Guard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ragx.documents.guard._MAX_SERVED", 5)
    assert len({text_of(guard, "process") for _ in range(12)}) == 3


@ON_LINUX
def test_a_process_that_has_grown_is_replaced(guard: Guard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ragx.documents.guard._MAX_GROWN_SHARE", 0.0)
    assert text_of(guard, "process") != text_of(guard, "process")


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        ("encrypted", "encrypted", "it is encrypted; an unprotected copy can be indexed"),
        ("no text", "no_text", "3 pages of images"),
        ("too big", "too_big", "it unpacks to too much"),
        ("damaged", "damaged", "it is cut off here"),
        ("own code", "damaged", "no"),
        ("library", "damaged", "KeyError: 'no part\\nwith details'"),
        ("silent", "damaged", "ValueError"),
        ("leave", "damaged", "SystemExit: 2"),
        ("interrupt", "damaged", "KeyboardInterrupt"),
        pytest.param(
            "recurse",
            "damaged",
            "it is nested too deeply",
            marks=pytest.mark.skipif(
                sys.version_info[:2] == (3, 13),
                reason="Python 3.13.0 itself crashes or loses the exception of a deep recursion",
            ),
        ),
    ],
)
def test_a_fault_keeps_its_code_and_the_process_lives_on(
    guard: Guard, document: str, code: str, message: str
):
    before = text_of(guard, "process")
    fault = fault_of(guard, document)
    assert (fault.code, fault.message) == (code, message)
    assert text_of(guard, "process") == before


def test_a_document_that_takes_too_long_is_given_up(hasty: Guard):
    pid = hasty.worker_pid
    fault = fault_of(hasty, "hang")
    assert fault.code == "extraction_timeout"
    assert fault.message == "to read it takes longer than 1 s"
    assert is_gone(pid)
    assert text_of(hasty, "where")


@ON_POSIX
def test_what_an_extractor_has_started_ends_with_it(hasty: Guard, packages: Path):
    assert fault_of(hasty, "start").code == "extraction_timeout"
    assert ends(int((packages / "acrobats.py.pid").read_text()))


@ON_LINUX
def test_one_that_hangs_in_c_is_given_up(hasty: Guard):
    assert fault_of(hasty, "hang in C").code == "extraction_timeout"
    assert text_of(hasty, "where")


@ON_LINUX
def test_memory_is_limited(guard: Guard):
    assert fault_of(guard, "allocate").code == "extraction_memory"
    fault = fault_of(guard, "no memory in a library")
    assert fault.message == "to read it takes more than 256 MiB of memory"
    assert text_of(guard, "where")


@ON_POSIX
@pytest.mark.parametrize(
    ("document", "how"), [("exit", "exit status 3"), ("segfault", "SIGSEGV"), ("fork", "")]
)
def test_a_crash_says_how(hasty: Guard, document: str, how: str):
    pid = hasty.worker_pid
    fault = fault_of(hasty, document)
    if how:
        assert fault.code == "extraction_crashed"
        assert fault.message == f"what reads it has crashed: {how}"
    assert is_gone(pid)
    assert text_of(hasty, "where")


@ON_POSIX
def test_the_last_words_of_a_crash_are_kept_clean(guard: Guard):
    assert fault_of(guard, "segfault").details == {"stderr": "on the way [31m out"}


@pytest.mark.parametrize("document", ["worn", "leaky"])
def test_what_a_worn_process_fails_at_a_new_one_tries_again(guard: Guard, document: str):
    text_of(guard, "where")
    pid = guard.worker_pid
    assert text_of(guard, document) == "by a new process"
    assert guard.worker_pid != pid


@ON_LINUX
@pytest.mark.parametrize(
    "document", ["close", "garbage", "half", "not JSON", "no object", "nothing", "flood"]
)
def test_a_process_that_breaks_the_protocol_is_ended(hasty: Guard, document: str):
    pid = hasty.worker_pid
    assert fault_of(hasty, document).code in ("extraction_crashed", "extraction_timeout")
    assert text_of(hasty, "where")
    hasty.close()
    assert is_gone(pid)


@pytest.mark.parametrize("document", ["wrong", "number", "link", "many", "long"])
def test_what_makes_no_document_is_refused(guard: Guard, document: str):
    fault = fault_of(guard, document)
    assert fault.code == "extraction_crashed"
    assert fault.message.startswith("what was read of it makes no document: ")


def test_nothing_is_no_document(guard: Guard):
    assert fault_of(guard, "none").code == "damaged"


def test_an_untidy_document_is_put_right(guard: Guard):
    extracted = guard.extract("acrobat", b"untidy")
    assert [block.text for block in extracted.blocks] == ["a b "]
    assert extracted.title.startswith("two lines")
    assert len(extracted.title) == 1000
    assert extracted.date == ""
    assert extracted.tags == ("a b",)
    assert extracted.skipped_parts[0].count == 2


def test_half_a_character_does_no_harm(guard: Guard):
    assert text_of(guard, "surrogate") == "a?b"


def test_what_libraries_print_goes_nowhere(guard: Guard):
    assert text_of(guard, "print") == "printed"
    assert text_of(guard, "chatter") == "said"
    assert text_of(guard, "read") == "''"


def test_the_largest_documents_pass(guard: Guard):
    raw = b"\0" + os.urandom(1 << 20) * 31
    (block,) = guard.extract("acrobat", raw).blocks
    assert block.text == hashlib.sha256(raw).hexdigest()
    assert len(text_of(guard, "most")) == 2_000_000


def test_a_document_over_the_limit_is_not_even_sent(guard: Guard):
    with pytest.raises(ExtractionError) as caught:
        guard.extract("acrobat", bytes((32 << 20) + 1))
    assert caught.value.code == "too_big"
    assert guard.worker_pid == 0


def test_the_process_knows_no_secrets(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
    names = text_of(guard, "variables").split("\n")
    assert not {"OPENAI_API_KEY", "SSH_AUTH_SOCK"} & set(names)
    assert text_of(guard, "where") == os.path.abspath(os.sep)


@ON_POSIX
def test_the_process_has_a_session_of_its_own(guard: Guard):
    pid, session = text_of(guard, "process").split()
    assert pid == session


def test_sets_are_walked_in_one_order_by_every_process(guard: Guard):
    first = text_of(guard, "order")
    guard.close()
    assert text_of(guard, "order") == first


@ON_LINUX
def test_no_large_file_is_written(guard: Guard):
    assert fault_of(guard, "write").message.startswith("OSError: [Errno 27]")


def test_a_relative_path_of_packages_stays_the_same_place(
    acrobat: None, packages: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(packages.parent)
    monkeypatch.setenv("PYTHONPATH", packages.name)
    with Guard(LIMITS) as guard:
        assert text_of(guard, "where")


def test_closing_leaves_nothing_behind(guard: Guard):
    text_of(guard, "where")
    pid = guard.worker_pid
    guard.close()
    guard.close()
    assert is_gone(pid)
    assert text_of(guard, "where")


def test_threads_take_turns(guard: Guard):
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(text_of(guard, "process"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    # The process outlives the thread that asked for it first.
    assert set(results) == {text_of(guard, "process")}
    assert len(results) == 8


@ON_POSIX
def test_a_process_killed_while_idle_is_replaced(guard: Guard):
    text_of(guard, "where")
    pid = guard.worker_pid
    os.kill(pid, signal.SIGKILL)
    assert text_of(guard, "where")
    assert guard.worker_pid != pid


OWNER = """
import sys
from ragx.documents.formats.base import ExtractLimits
from ragx.documents.guard import Guard

with Guard(ExtractLimits()) as guard:
    print(guard.extract("acrobat", b"process").blocks[0].text.split()[0], flush=True)
    try:
        guard.extract("acrobat", sys.argv[1].encode())
    except KeyboardInterrupt:
        print("interrupted", guard.worker_pid, flush=True)
"""


def owner(document: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, document], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@ON_LINUX
@pytest.mark.parametrize("document", ["hang", "hang in C"])
def test_a_busy_process_ends_with_a_killed_parent(acrobat: None, document: str):
    process, pid = owner(document)
    with process:
        assert is_running(pid)
        process.kill()
    assert ends(pid)


@ON_POSIX
def test_an_interrupt_ends_the_process_and_goes_on(acrobat: None, packages: Path):
    process, pid = owner("start")
    with process:
        assert comes(packages / "acrobats.py.pid")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert said == "interrupted 0\n"
    assert process.returncode == 0
    assert not is_running(pid)
    assert ends(int((packages / "acrobats.py.pid").read_text()))


def test_a_plugin_describes_itself(guard: Guard):
    (description,) = guard.describe()
    assert (description.name, description.version) == ("acrobat", "7")
    assert description.extensions == ("acr", "tar.acr")
    assert description.identity == "acrobat@7/acrobats-1.0"
    assert guard.warnings == ()


PLUGINS = """
from ragx.documents.formats.base import Block, Extracted, Place


class Reader:
    version = "1"
    extensions = ("x",)

    def __init__(self, name, **more):
        self.name = name
        vars(self).update(more)

    def extract(self, raw, limits):
        return Extracted((Block("text", f"by {self.name}", Place("page", 1)),))


notebook = Reader("notebook")
twin = Reader("notebook", version="2")
upper = Reader("Upper Case")
dotted = Reader("dotted", extensions=(".x",))
"""


def test_plugins_that_do_not_fit_are_left_out_and_said(packages: Path):
    install(
        packages, "readers", PLUGINS,
        "a = readers:notebook", "b = readers:twin", "c = readers:upper", "d = readers:dotted",
        "e = readers:absent", "f = nowhere:reader", "g = quitter:reader",
    )  # fmt: skip
    (packages / "quitter.py").write_text("import os; os._exit(9)")
    with Guard(LIMITS) as guard:
        assert [each.name for each in guard.describe()] == ["notebook"]
        assert [warning.partition(" of readers ")[2] for warning in guard.warnings] == [
            "takes over notebook",
            "is not used: another one reads notebook",
            "is not used: its name, version or extensions are not valid",
            "is not used: its name, version or extensions are not valid",
            "is not used: AttributeError: module 'readers' has no attribute 'absent'",
            "is not used: ModuleNotFoundError: No module named 'nowhere'",
            "is not used: what reads it has crashed: exit status 9",
        ]
        (block,) = guard.extract("notebook", b"{}").blocks
        assert block.text == "by notebook"


def test_a_plugin_that_hangs_when_loaded_is_left_out(packages: Path):
    install(packages, "sleepers", "while True: pass", "a = sleepers:reader")
    with Guard(HASTY) as guard:
        assert guard.describe() == ()
        (warning,) = guard.warnings
        assert warning.startswith("plug-in a of sleepers is not used: to read it takes longer")


def test_a_format_without_its_library_names_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    absent = registry.Format("tea", "1", ("tea",), "nowhere", ("no_such_library",), "Tea", ())
    monkeypatch.setattr(registry, "find", {"tea": absent}.get)
    with Guard(LIMITS) as guard, pytest.raises(MissingDependency) as caught:
        guard.extract("tea", b"x")
    assert caught.value.message == "Tea: to read it takes no_such_library, which is not installed"
    assert "pip install" in caught.value.hint


def test_a_built_in_format_is_read_through_the_guard():
    with Guard(LIMITS) as guard:
        extracted = guard.extract("notebook", NOTEBOOK)
        assert isinstance(extracted, Extracted)
        assert [block.text for block in extracted.blocks] == ["Tides"]
        with pytest.raises(ExtractionError) as caught:
            guard.extract("notebook", NOTEBOOK[:20])
        assert caught.value.code == "damaged"


NOTEBOOK = (
    b'{"cells": [{"cell_type": "markdown", "metadata": {}, "source": "# Tides"}],'
    b' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
)


def test_an_extractor_that_cannot_be_loaded_is_not_the_documents_fault(packages: Path) -> None:
    """A library without its shared object, say: found, and then it does not import."""
    broken = packages / "pypdfium2"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('libpdfium.so: no such file')\n")
    install(packages, "shaky", "import no_such_module_at_all\n", "shaky = shaky:extractor")
    with Guard(LIMITS) as guard:
        assert guard.describe() == ()
        assert any("no_such_module_at_all" in line for line in guard.warnings)
        with pytest.raises(ExtractionError) as caught:
            guard.extract("pdf", b"%PDF-1.4\n")
        assert caught.value.code == "extractor_broken"
        assert "libpdfium.so" in caught.value.message
        assert guard.extract("notebook", b"") == Extracted(())
