"""Walk a corpus and list the files that count, with their stat data and what was left out.

Only directories are read, and ignore files; no other file is opened, so a FIFO cannot block the
walk and 20,000 files take a fraction of a second. What a file's content decides (binary, secret)
is decided where the content is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from ragx.documents.formats.registry import BUILT_IN
from ragx.documents.secrets import secret_name
from ragx.errors import CorpusError, UsageError
from ragx.indexing.gitignore import (
    IgnoreRules,
    enclosing_repository,
    exclude_file,
    match_key,
    parse_globs,
    parse_ignore_file,
)
from ragx.indexing.patterns import DEFAULT_EXCLUDE, DEFAULT_INCLUDE

__all__ = [
    "ScanOptions",
    "ScanResult",
    "SeenFile",
    "Skipped",
    "check_root",
    "resolve_named",
    "scan",
]

DOCUMENT_EXTENSIONS = frozenset(one for format in BUILT_IN for one in format.extensions)
CONFIG_NAME = "ragx.toml"
IGNORE_NAME = ".ragxignore"
_INDEX_NAME = ".ragx"
_GIT_IGNORE_NAME = ".gitignore"
_NEVER_ENTERED = frozenset(("node_modules", "__pycache__"))
_VENV_MARK = "pyvenv.cfg"
# An ignore file over this is not one; compiling it would take longer than the walk.
_MAX_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What counts as part of the corpus.

    Globs are gitignore patterns relative to the root. A file counts if `include` matches it or a
    directory above it (an empty `include` matches all), unless `exclude` does too. Sizes are in
    bytes; 0 means no limit, for `max_files` as well. `max_document_bytes` holds for files with one
    of the extensions in `documents` (lower-case, without a dot), `max_file_bytes` for all others.
    """

    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    respect_gitignore: bool = True
    max_file_bytes: int = 10485760
    max_document_bytes: int = 33554432
    documents: frozenset[str] = DOCUMENT_EXTENSIONS
    max_files: int = 0
    follow_symlinks: bool = False


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file that counts: root-relative POSIX path and what tells that its content may differ."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path that was left out, a directory's ending in "/" and standing for all below it.

    `reason` is a stable key: too_large, unreadable, symlink, special, secret, excluded,
    not_included, ignored, hidden, bad_name, vanished; reading adds binary.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Everything the walk met, both lists sorted by path."""

    files: tuple[SeenFile, ...]
    skipped: tuple[Skipped, ...]


def scan(root: Path, options: ScanOptions) -> ScanResult:
    """List the corpus below a root, which may itself be a link.

    Ignore files count as in git, those above the root in its repository included;
    `.ragxignore` has the same syntax, counts even where `.gitignore` does not, and has the last
    word over it (a negated pattern brings a git-ignored path back). The root itself counts even
    if its repository ignores it.

    Raises:
        CorpusError: the root cannot be listed, or (code "too_many_files") more than
            `options.max_files` files count.
    """
    walker = _Walker(root, options)
    walker.walk()
    return ScanResult(
        tuple(sorted(walker.files, key=attrgetter("path"))),
        tuple(sorted(walker.skipped, key=attrgetter("path"))),
    )


def check_root(root: Path, *, confirmed: bool) -> None:
    """Refuse a root that is hours of work by accident: the home directory or a whole disk.

    Raises:
        CorpusError: code "broad_root"; not `confirmed` and too broad.
    """
    if confirmed:
        return
    real = Path(os.path.realpath(root))
    try:
        home: Path | None = Path(os.path.realpath(Path.home()))
    except RuntimeError:
        home = None
    if real == real.parent:
        what = "the root of a file system"
    elif real == home:
        what = "your home directory"
    else:
        return
    raise CorpusError(
        f"{real} is {what}, too broad for a corpus",
        hint="name a project directory, or confirm with --yes",
        code="broad_root",
    )


def resolve_named(root: Path, names: Sequence[str], cwd: Path) -> list[str]:
    """Turn file arguments into root-relative POSIX paths, one spelling for each file.

    A directory's path ends in "/" ("./" is the root itself). Links on the way are resolved, a
    link at the end is not; what does not exist is taken for a file, as it may be one to remove.

    Raises:
        UsageError: a name is empty, impossible, or outside the root.
    """
    real_root = os.path.realpath(root)
    resolved = []
    for name in names:
        if not name or "\0" in name:
            raise UsageError(f"not a file name: {name!r}")
        given = os.path.join(cwd, name)
        head, tail = os.path.split(given.rstrip(os.sep) or given)
        if tail in ("", os.curdir, os.pardir):
            full = os.path.realpath(given)
        else:
            full = os.path.join(os.path.realpath(head), tail)
        if not _is_within(full, real_root):
            full = os.path.realpath(full)
        if full == real_root:
            resolved.append("./")
            continue
        if not _is_within(full, real_root):
            raise UsageError(
                f"{name} is outside the corpus {root}", hint="name files below the corpus root"
            )
        path = Path(full).relative_to(real_root).as_posix()
        resolved.append(f"{path}/" if name.endswith("/") or os.path.isdir(full) else path)
    return resolved


@dataclass(frozen=True, slots=True)
class _Layer:
    """Rules and where they belong: `above` leads from their directory down to the root, `cut`
    characters of a root-relative key lead from the root down to their directory."""

    rules: IgnoreRules
    above: str = ""
    cut: int = 0

    def verdict(self, name: str, path: str, is_dir: bool) -> bool | None:
        return self.rules.verdict(name, self.above + path[self.cut :], is_dir=is_dir)


@dataclass(frozen=True, slots=True)
class _Directory:
    """One directory still to be listed. Layers are in order of precedence, highest first."""

    real: str  # where it is listed
    path: str  # "" or root-relative with a trailing slash
    key: str  # `path` as a match key
    own: tuple[_Layer, ...]
    git: tuple[_Layer, ...]
    included: bool
    behind_links: int = 0  # links on the way to it


class _Walker:
    def __init__(self, root: Path, options: ScanOptions) -> None:
        self.files: list[SeenFile] = []
        self.skipped: list[Skipped] = []
        self._options = options
        self._root = os.path.realpath(root)
        self._include = parse_globs(options.include)
        self._exclude = parse_globs(options.exclude)
        self._linked: list[_Directory] = []
        self._entered: set[str] = set()

    def walk(self) -> None:
        start = _Directory(
            self._root, "", "", (), self._layers_above(), included=not self._options.include
        )
        pending = [start]
        while pending:
            pending.extend(self._list(pending.pop()))
            if not pending:
                pending.extend(self._next_linked())

    def _next_linked(self) -> list[_Directory]:
        """The first linked directory that may still be entered, once all others are listed.

        A link in the real tree always may. One met behind a link only leads where the walk has
        not been: else a few directories that link to each other would be walked in every order.
        """
        self._linked.sort(key=attrgetter("behind_links", "path"))
        while self._linked:
            directory = self._linked.pop(0)
            if directory.behind_links == 1 or directory.real not in self._entered:
                return [directory]
            self._skip(directory.path.removesuffix("/"), "symlink")
        return []

    def _layers_above(self) -> tuple[_Layer, ...]:
        """Rules of the enclosing repository that stand above the root, nearest first."""
        if not self._options.respect_gitignore:
            return ()
        root = Path(self._root)
        top = enclosing_repository(root)
        if top is None:
            return ()
        layers = []
        at = root
        while at != top:
            at = at.parent
            above = match_key(root.relative_to(at).as_posix()) + "/"
            rules = self._read_rules(os.path.join(at, _GIT_IGNORE_NAME), None)
            layers.append(_Layer(rules, above=above))
        if top != root:
            above = match_key(root.relative_to(top).as_posix()) + "/"
            layers.append(_Layer(self._read_rules(exclude_file(top), None), above=above))
        return tuple(layer for layer in layers if layer.rules)

    def _read_rules(self, file: str | Path, shown: str | None) -> IgnoreRules:
        """Rules of an ignore file; none if it is absent, a link (as in git) or not a plain file."""
        try:
            status = os.lstat(file)
            if stat.S_ISREG(status.st_mode):
                if status.st_size <= _MAX_IGNORE_BYTES:
                    return parse_ignore_file(Path(file).read_bytes())
                if shown:
                    self._skip(shown, "too_large")
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            if shown:
                self._skip(shown, "unreadable")
        return IgnoreRules(())

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))

    def _list(self, directory: _Directory) -> list[_Directory]:
        """Sort one directory's entries into files, skipped paths and directories to enter."""
        try:
            with os.scandir(directory.real) as listing:
                entries = list(listing)
            self._entered.add(directory.real)
        except OSError as exc:
            self._cannot_list(directory, exc)
            return []
        names = {entry.name for entry in entries}
        if _VENV_MARK in names and directory.path:
            self._skip(directory.path, "excluded")
            return []
        directory = self._with_own_rules(directory, names)
        subdirectories = []
        for entry in entries:
            if entry.name == _INDEX_NAME or (entry.name == CONFIG_NAME and not directory.path):
                continue  # ours: no part of the corpus, so nothing that was left out of it
            try:
                found = self._visit(entry, directory)
            except FileNotFoundError:
                self._skip(directory.path + _printable(entry.name), "vanished")
            except OSError:
                self._skip(directory.path + _printable(entry.name), "unreadable")
            else:
                if found:
                    subdirectories.append(found)
        return subdirectories

    def _cannot_list(self, directory: _Directory, exc: OSError) -> None:
        if not directory.path:
            raise CorpusError(
                f"cannot list the corpus {directory.real}: {exc.strerror or exc}",
                hint="check that it is a directory you may read",
            ) from exc
        vanished = isinstance(exc, (FileNotFoundError, NotADirectoryError))
        self._skip(directory.path, "vanished" if vanished else "unreadable")

    def _with_own_rules(self, directory: _Directory, names: set[str]) -> _Directory:
        """Add the rules that the directory itself brings; a nested repository starts afresh."""
        own, git = directory.own, directory.git
        cut = len(directory.key)
        if self._options.respect_gitignore:
            if ".git" in names:
                rules = self._read_rules(exclude_file(Path(directory.real)), None)
                git = (_Layer(rules, cut=cut),) if rules else ()
            if _GIT_IGNORE_NAME in names:
                git = self._stacked(directory, _GIT_IGNORE_NAME, git)
        if IGNORE_NAME in names:
            own = self._stacked(directory, IGNORE_NAME, own)
        if own is directory.own and git is directory.git:
            return directory
        return replace(directory, own=own, git=git)

    def _stacked(
        self, directory: _Directory, name: str, layers: tuple[_Layer, ...]
    ) -> tuple[_Layer, ...]:
        rules = self._read_rules(os.path.join(directory.real, name), directory.path + name)
        return (_Layer(rules, cut=len(directory.key)), *layers) if rules else layers

    def _visit(self, entry: os.DirEntry[str], directory: _Directory) -> _Directory | None:
        """Record one entry, or return it as a directory to enter. Raises OSError as stat does."""
        name = entry.name
        name_key = name
        if not name.isascii():
            if not _is_unicode(name):
                slash = "/" if entry.is_dir(follow_symlinks=False) else ""
                self._skip(directory.path + _printable(name) + slash, "bad_name")
                return None
            name_key = match_key(name)
        path = directory.path + name
        path_key = directory.key + name_key
        is_link = entry.is_symlink()
        target = self._link_target(entry) if is_link and self._options.follow_symlinks else ""
        is_dir = os.path.isdir(target) if target else entry.is_dir(follow_symlinks=False)
        reason = self._left_out(name, name_key, path_key, is_dir, directory)
        if not reason and is_link and not target:
            reason = "symlink"
        if reason:
            self._skip(path + "/" if is_dir and not is_link else path, reason)
            return None
        verdict = self._include.verdict(name_key, path_key, is_dir=is_dir)
        included = directory.included if verdict is None else verdict
        if not is_dir:
            self._visit_file(path, entry, is_link, included)
            return None
        below = replace(
            directory,
            real=target or entry.path,
            path=path + "/",
            key=path_key + "/",
            included=included,
        )
        if not is_link:
            return below
        if directory.real == target or _is_within(directory.real, target):
            self._skip(path, "symlink")  # it leads back up, a loop
        else:
            self._linked.append(replace(below, behind_links=directory.behind_links + 1))
        return None

    def _left_out(
        self, name: str, name_key: str, path_key: str, is_dir: bool, directory: _Directory
    ) -> str:
        """Why an entry is left out by its name and place; empty if it is not."""
        if is_dir:
            if name[0] == ".":
                return "hidden"
            if name in _NEVER_ENTERED:
                return "excluded"
        elif name == ".git":
            return "hidden"
        if _is_ignored(directory, name_key, path_key, is_dir):
            return "ignored"
        if self._exclude.verdict(name_key, path_key, is_dir=is_dir):
            return "excluded"
        return "secret" if not is_dir and secret_name(name) else ""

    def _visit_file(
        self, path: str, entry: os.DirEntry[str], is_link: bool, included: bool
    ) -> None:
        if not entry.is_file(follow_symlinks=is_link):
            self._skip(path, "special")
            return
        if not included:
            self._skip(path, "not_included")
            return
        status = entry.stat(follow_symlinks=is_link)
        limit = self._limit(path)
        if limit and status.st_size > limit:
            self._skip(path, "too_large")
            return
        self.files.append(
            SeenFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        )
        max_files = self._options.max_files
        if max_files and len(self.files) > max_files:
            raise CorpusError(
                f"more than {max_files} files count in {self._root} (stopped at {path})",
                hint="raise corpus.max_files, or narrow corpus.include and corpus.exclude",
                code="too_many_files",
                details={"max_files": max_files, "n_files": len(self.files)},
            )

    def _limit(self, path: str) -> int:
        extension = path.rpartition(".")[2].lower()
        if extension in self._options.documents:
            return self._options.max_document_bytes
        return self._options.max_file_bytes

    def _link_target(self, entry: os.DirEntry[str]) -> str:
        """Where a link really leads; empty if that is nowhere, outside, or never to be read."""
        target = os.path.realpath(entry.path)
        if not _is_within(target, self._root) or not os.path.exists(target):
            return ""
        *above, name = os.path.relpath(target, self._root).split(os.sep)
        if os.path.isdir(target):
            above.append(name)
        elif name == ".git" or secret_name(name):
            return ""
        barred = any(part[0] == "." or part in _NEVER_ENTERED for part in above)
        return "" if barred else target


def _is_ignored(directory: _Directory, name_key: str, path_key: str, is_dir: bool) -> bool:
    for layer in directory.own:
        verdict = layer.verdict(name_key, path_key, is_dir)
        if verdict is not None:
            return verdict
    for layer in directory.git:
        verdict = layer.verdict(name_key, path_key, is_dir)
        if verdict is not None:
            return verdict
    return False


def _is_within(path: str, directory: str) -> bool:
    return path.startswith(directory if directory.endswith(os.sep) else directory + os.sep)


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
