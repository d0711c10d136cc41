"""Files of the test collections: written from a stored corpus, or taken from a released package."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import quote
from urllib.request import urlopen

CORPUS_NAME = "corpus.jsonl.gz"
QUERIES_NAME = "queries.jsonl"
STATE_NAME = "results"  # folder of the work directory that holds no collection
_UNFINISHED = "unfinished"
_TIMEOUT_S = 60


class FetchError(Exception):
    """A collection's files cannot be had; the message says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """A release whose `index_folder` is the directory to index."""

    registry: str
    name: str
    index_folder: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """A folder with queries. `package` is None where it holds the corpus itself."""

    name: str
    folder: Path
    package: Package | None = None

    @property
    def group(self) -> str:
        """The folder that it is measured with as one; empty if it stands alone."""
        return self.name.rpartition("/")[0]

    @property
    def slug(self) -> str:
        """The name as a file's name."""
        return self.name.replace("/", "--")

    def queries(self) -> bytes:
        """The judged questions as they are stored."""
        return (self.folder / QUERIES_NAME).read_bytes()

    def stamp(self) -> str:
        """What changes with the files."""
        if self.package is not None:
            return f"{self.package.registry} {self.package.name} {self.package.index_folder}"
        return hashlib.sha256((self.folder / CORPUS_NAME).read_bytes()).hexdigest()


# Sets whose package only their README names.
_PACKAGES = {
    "code-pip": Package("pypi", "pip==21.1.2"),
    "code-svelte": Package("npm", "svelte@5.15.0", "package/"),
}


def find_collections(data: Path) -> list[Collection]:
    """Every folder below `data` with queries whose files can be had, in order of names."""
    found: list[Collection] = []
    for queries in sorted(data.rglob(QUERIES_NAME)):
        folder = queries.parent
        name = folder.relative_to(data).as_posix()
        if name in (".", STATE_NAME) or any(name.startswith(f"{one.name}/") for one in found):
            raise FetchError(f"{queries}: a collection cannot stand here")
        meta = folder / "meta.json"
        if (folder / CORPUS_NAME).is_file():
            found.append(Collection(name, folder))
        elif meta.is_file():
            facts = json.loads(meta.read_text("utf-8"))
            package = Package(facts["registry"], facts["package"], facts["index_folder"])
            found.append(Collection(name, folder, package))
        elif name in _PACKAGES:
            found.append(Collection(name, folder, _PACKAGES[name]))
        else:
            print(f"{name}: left out, nothing says where its files are", file=sys.stderr)
    return found


def write_collection(collection: Collection, work: Path) -> Path:
    """Have the collection's files on disk, written once; the directory to index.

    Files that an older state of the collection left are removed, an index is kept.

    Raises:
        FetchError: they cannot be had, or what stands there was not made here.
    """
    target = work / collection.name
    folder = collection.package.index_folder if collection.package else ""
    root = target.joinpath(*_parts(folder)) if folder else target
    marker = work / STATE_NAME / f"{collection.slug}.files"
    stamp = collection.stamp()
    if marker.is_file():
        if marker.read_text("utf-8") == stamp:
            return root
    elif target.is_dir() and any(target.iterdir()):
        raise FetchError(f"{target} holds files that were not written by this benchmark")
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(_UNFINISHED, "utf-8")
    if collection.package is None:
        written = _write_files(target, _corpus_files(collection.folder / CORPUS_NAME))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            archive = _download(collection.package, Path(scratch))
            written = _write_files(target, _archive_files(archive))
    for path in list(target.rglob("*")):
        ours = ".ragx" in path.relative_to(target).parts or path.name == "ragx.toml"
        if path.is_file() and path not in written and not ours:
            path.unlink()
    marker.write_text(stamp, "utf-8")
    return root


def _write_files(target: Path, files: Iterable[tuple[str, bytes]]) -> set[Path]:
    """Write each content to its path below `target`; one that is there already stays untouched."""
    written: set[Path] = set()
    for path, content in files:
        full = target.joinpath(*_parts(path))
        full.parent.mkdir(parents=True, exist_ok=True)
        if not full.is_file() or full.read_bytes() != content:
            full.write_bytes(content)
        written.add(full)
    if not written:
        raise FetchError(f"nothing to write to {target}")
    return written


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a relative path that stays below where it starts, on any system."""
    parts = PurePosixPath(path).parts
    outside = path.startswith("/") or ".." in parts or PureWindowsPath(path).drive
    if not parts or outside or "\\" in path or "\0" in path or ".ragx" in parts:
        raise FetchError(f"{path!r} is no path that a corpus may hold")
    return parts


def _corpus_files(path: Path) -> Iterator[tuple[str, bytes]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)
            yield found["path"], found["text"].encode()


def _archive_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Regular files of a zip or tar archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    yield info.filename, archive.read(info)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read()


def _download(package: Package, scratch: Path) -> Path:
    """The release's archive, through its registry's own client where there is one."""
    if package.registry == "pypi":
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        how = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python"]
        _run([*pip, *how, "--dest", str(scratch), package.name])
    elif package.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            return _download_tarball(package.name, scratch)
        _run([npm, "pack", "--silent", "--pack-destination", str(scratch), package.name])
    else:
        raise FetchError(f"{package.name}: no registry is called {package.registry!r}")
    archives = list(scratch.iterdir())
    if len(archives) != 1:
        raise FetchError(f"{package.name}: {len(archives)} archives came instead of one")
    return archives[0]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise FetchError(f"{' '.join(command[:4])} ... {command[-1]} failed: {' '.join(said)}")


def _download_tarball(spec: str, scratch: Path) -> Path:
    """An npm release without npm: the registry names its archive and that archive's hash."""
    name, _, version = spec.rpartition("@")
    address = f"{npm_registry(os.environ, Path.home())}/{quote(name, safe='@')}/{version}"
    try:
        with urlopen(address, timeout=_TIMEOUT_S) as reply:
            dist = json.load(reply)["dist"]
        with urlopen(dist["tarball"], timeout=_TIMEOUT_S) as reply:
            content = reply.read()
    except (OSError, ValueError, KeyError) as fault:
        raise FetchError(f"{spec}: the npm registry did not give it ({fault})") from fault
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if f"sha512-{digest}" not in dist.get("integrity", "").split():
        raise FetchError(f"{spec}: what came is not what the registry announced")
    archive = scratch / "package.tgz"
    archive.write_bytes(content)
    return archive


def npm_registry(env: Mapping[str, str], home: Path) -> str:
    """Address that npm's settings name, without a slash at the end."""
    named = [env.get("npm_config_registry", ""), env.get("NPM_CONFIG_REGISTRY", "")]
    settings = home / ".npmrc"
    if settings.is_file():
        text = settings.read_text("utf-8", "replace")
        named += re.findall(r"(?m)^\s*registry\s*=\s*[\"']?([^\s\"']+)", text)
    for address in named:
        if address.startswith(("https://", "http://")):
            return address.rstrip("/")
    raise FetchError("npm is not installed, and npm_config_registry names no registry to ask")
