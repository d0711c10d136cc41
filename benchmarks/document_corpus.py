"""The corpus of real documents: taken from released packages, each file checked by its hash."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

DATA = Path(__file__).parent / "data" / "documents"
# Kinds of documents, which are folders of the corpus, too. What lies in "odd" is real but broken,
# mislabelled or empty: it is indexed in the trial of hostile documents only.
KINDS = (
    "pdf", "docx", "pptx", "xlsx", "odt", "ods", "odp", "html", "ipynb", "epub", "rtf", "eml",
)  # fmt: skip
ODD = "odd"


class CorpusError(Exception):
    """The corpus cannot be had as the manifest describes it; the message says why."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the corpus and where it comes from.

    Args:
        file: its path in the corpus; the first folder is its kind.
        registry: "debian" or "pypi".
        path: inside the package; one that ends in ".gz" is unpacked.
        license: as the package states it.
    """

    file: str
    registry: str
    package: str
    version: str
    path: str
    bytes: int
    sha256: str
    license: str

    @property
    def kind(self) -> str:
        """The folder that it lies in."""
        return self.file.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, and where the answer stands.

    Args:
        places: all locators that hold the answer, the chief one first.
        cross: whether a document of another kind speaks of the same thing.
    """

    id: str
    query: str
    file: str
    places: tuple[dict[str, object], ...]
    answer: str
    cross: bool = False

    @property
    def kind(self) -> str:
        """The kind of document that answers it."""
        return self.file.partition("/")[0]


def read_manifest(path: Path = DATA / "manifest.jsonl") -> list[Document]:
    """All documents, in order of their paths."""
    return [Document(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def read_questions(path: Path = DATA / "questions.jsonl") -> list[Question]:
    """All questions, as they are stored."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        places = (row["locator"], *row.get("also", ()))
        cross = row.get("cross", False)
        found.append(Question(row["id"], row["query"], row["file"], places, row["answer"], cross))
    return found


def collect(target: Path, documents: Sequence[Document]) -> Iterator[str]:
    """Lay the corpus out below `target`; files that are there already stay.

    Yields:
        One line for each package, and one for each document that differs from the manifest.
    Raises:
        CorpusError: some documents are missing at the end; the message names them.
    """
    missing = [one for one in documents if not _is_there(target, one)]
    for key in sorted({(one.registry, one.package, one.version) for one in missing}):
        wanted = [one for one in missing if (one.registry, one.package, one.version) == key]
        with tempfile.TemporaryDirectory() as scratch:
            try:
                root = _fetch(*key, Path(scratch))
                lines = [_take(target, root, one) for one in wanted]
            except CorpusError as fault:
                lines = [str(fault)]
        yield f"{key[1]} {key[2]}: {len(wanted)} documents"
        yield from filter(None, lines)
    absent = [one.file for one in documents if not _is_there(target, one)]
    if absent:
        raise CorpusError(f"{len(absent)} documents are missing: {', '.join(absent[:5])}")


def check(target: Path, documents: Sequence[Document]) -> None:
    """Raise CorpusError unless every document is there as the manifest has it."""
    wrong = [one.file for one in documents if not _is_there(target, one)]
    if wrong:
        raise CorpusError(
            f"{len(wrong)} documents are missing or differ ({', '.join(wrong[:3])}):"
            f" python benchmarks/documents.py collect {target}"
        )


def table(documents: Sequence[Document]) -> Iterator[str]:
    """The corpus by kind, as Markdown."""
    yield "| kind | documents | MB | packages |"
    yield "|---|---:|---:|---:|"
    for kind in (*KINDS, ODD):
        some = [one for one in documents if one.kind == kind]
        n_bytes = sum(one.bytes for one in some)
        packages = len({one.package for one in some})
        yield f"| {kind} | {len(some)} | {n_bytes / 1e6:.1f} | {packages} |"
    packages = len({one.package for one in documents})
    yield f"| all | {len(documents)} | {sum(d.bytes for d in documents) / 1e6:.1f} | {packages} |"


def _is_there(target: Path, document: Document) -> bool:
    path = target / document.file
    return path.is_file() and _digest(path.read_bytes()) == document.sha256


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _take(target: Path, root: Path, document: Document) -> str:
    """Copy one document out of its unpacked package; what is wrong with it, or ""."""
    source = root / document.path
    if not source.is_file():
        return f"  {document.path} is not in this release"
    raw = source.read_bytes()
    if document.path.endswith(".gz"):
        raw = gzip.decompress(raw)
    if _digest(raw) != document.sha256:
        return f"  {document.file} differs from the manifest"
    path = target.joinpath(*PurePosixPath(document.file).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return ""


def _fetch(registry: str, package: str, version: str, scratch: Path) -> Path:
    """Download and unpack a release; the folder that paths of the manifest start from."""
    root = scratch / "unpacked"
    root.mkdir()
    if registry == "debian":
        _run(["apt-get", "download", "-qq", f"{package}={version}"], scratch)
        _run(["dpkg", "-x", str(_only(scratch, ".deb")), str(root)], scratch)
        return root
    if registry != "pypi":
        raise CorpusError(f"{package}: no registry is called {registry!r}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    _run([*pip, "--no-deps", "--no-binary=:all:", f"{package}=={version}"], scratch)
    with tarfile.open(_only(scratch, ".tar.gz")) as archive:
        archive.extractall(root, filter="data")
    return root


def _only(folder: Path, ending: str) -> Path:
    found = [path for path in folder.iterdir() if path.name.endswith(ending)]
    if len(found) != 1:
        raise CorpusError(f"{len(found)} files ending in {ending} came instead of one")
    return found[0]


def _run(command: list[str], folder: Path) -> None:
    if command[0] != sys.executable and shutil.which(command[0]) is None:
        raise CorpusError(f"{command[0]} is not there: the corpus comes from Debian's packages")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-2:]
        raise CorpusError(f"{' '.join(command[:2])} ... {command[-1]} failed: {' '.join(said)}")
