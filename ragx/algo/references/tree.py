"""The paths of a corpus, indexed for the questions that resolving a reference asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ragx.algo.references.base import fold

__all__ = [
    "DOC_EXTENSIONS",
    "Nearest",
    "Placed",
    "Tree",
    "ancestors",
    "directory_of",
    "join",
    "name_key",
]

DOC_EXTENSIONS = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".org", ".txt", ".html")
_DOC_RANK = {extension: rank for rank, extension in enumerate(DOC_EXTENSIONS)}
_FRONT_STEMS = {"index": 0, "_index": 1, "readme": 2}
_SEPARATORS = str.maketrans("-_", "  ")


def directory_of(path: str) -> str:
    """Return the directory of a path; "" is the root."""
    return path.rpartition("/")[0]


def ancestors(directory: str) -> Iterator[str]:
    """Yield a directory and those above it, the root ("") last."""
    while directory:
        yield directory
        directory = directory.rpartition("/")[0]
    yield ""


def join(directory: str, path: str) -> str | None:
    """Join and normalise; None when the path leaves the root. A result of "" is the root."""
    if not ("./" in path or "//" in path or path[-1:] in "./" or path[:1] == "/"):
        return f"{directory}/{path}" if directory else path
    parts = directory.split("/") if directory else []
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return "/".join(parts)


def name_key(name: str) -> str:
    """Reduce a page's name to what counts: case, and the kind of space, do not."""
    return " ".join(fold(name).translate(_SEPARATORS).split())


def _split(path: str) -> tuple[str, str]:
    """Split a path before its file's extension; the extension has its dot, `.d.ts` is one."""
    dot = path.rfind(".")
    if dot <= path.rfind("/") + 1:
        return path, ""
    if path.endswith(".d.ts"):
        dot = len(path) - 5
    return path[:dot], path[dot:]


class Nearest:
    """Paths among which the nearest to a source is wanted.

    Nearest is the longest directory prefix in common, then the lower rank, then the shorter path,
    then the alphabet. A table from each directory to the best path below it makes a look-up cost
    the source's depth, however many paths there are.
    """

    __slots__ = ("best",)

    def __init__(self, paths: Sequence[str], ranks: Sequence[int] | None = None) -> None:
        order = sorted(
            range(len(paths)),
            key=lambda i: (ranks[i] if ranks is not None else 0, len(paths[i]), paths[i]),
        )
        self.best: dict[str, str] = {}
        for i in order:
            directory = directory_of(paths[i])
            while directory not in self.best:  # where one is taken, all above it are
                self.best[directory] = paths[i]
                directory = directory_of(directory)

    def to(self, directory: str) -> str:
        """Return the path nearest to a source's directory."""
        best = self.best
        while directory not in best:
            directory = directory_of(directory)
        return best[directory]


class Placed:
    """Where a stem lies: the path for each prefix (`""`, `a/`), and the nearest of them."""

    __slots__ = ("_by_prefix", "_nearest")

    def __init__(self, by_prefix: dict[str, tuple[int, str]]) -> None:
        self._by_prefix = by_prefix
        self._nearest: Nearest | None = None

    def __bool__(self) -> bool:
        return bool(self._by_prefix)

    def at(self, prefix: str) -> str:
        """Return the path under exactly this prefix, or ""."""
        found = self._by_prefix.get(prefix)
        return found[1] if found is not None else ""

    def climb(self, directory: str, roots: Sequence[str]) -> str:
        """Return the path in a directory above a source, or in a source root there; or ""."""
        if not self._by_prefix:
            return ""
        for base in ancestors(directory):
            prefix = base + "/" if base else ""
            for root in roots:
                found = self._by_prefix.get(prefix + root)
                if found is not None:
                    return found[1]
        return ""

    def nearest(self, directory: str) -> str:
        """Return the path nearest to a source's directory, or ""."""
        if not self._by_prefix:
            return ""
        if self._nearest is None:
            found = list(self._by_prefix.values())
            self._nearest = Nearest([path for _, path in found], [rank for rank, _ in found])
        return self._nearest.to(directory)


_NOWHERE = Placed({})


def _middles(endings: Sequence[str]) -> dict[str, dict[str, int]]:
    """Group endings such as `/index.d.ts` by what precedes the extension; values are ranks."""
    middles: dict[str, dict[str, int]] = {}
    for rank, ending in enumerate(endings):
        dot = len(ending) - 5 if ending.endswith(".d.ts") else ending.rfind(".")
        middle, extension = (ending[:dot], ending[dot:]) if dot >= 0 else (ending, "")
        middles.setdefault(middle, {}).setdefault(extension, rank)
    return middles


class Tree:
    """Indexes over file paths, built in one pass; answers are kept, misses too.

    `by_stem` and `by_pair` hold paths under the folded stem and `parent/stem`, `front` finds the
    page that stands for a directory.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.files: frozenset[str] = frozenset(paths)
        self.folded: dict[str, list[str]] = {}
        self.by_tail: dict[str, list[str]] = {}
        self.by_name: dict[str, list[str]] = {}
        self.directories: dict[str, list[str]] = {"": []}
        self._placed: dict[tuple[str, Sequence[str]], Placed] = {}
        self._middles: dict[Sequence[str], dict[str, dict[str, int]]] = {}
        self._directory_suffixes: dict[tuple[str, ...], dict[str, Nearest | list[str]]] = {}
        self._fronts: dict[str, str] = {}
        for path in sorted(self.files):
            self._add(path)

    def _add(self, path: str) -> None:
        folded = fold(path)
        self.folded.setdefault(folded, []).append(path)
        stem, _ = _split(path)
        directory, _, name = stem.rpartition("/")
        self.by_tail.setdefault(name, []).append(path)
        if directory:
            self.by_tail.setdefault(f"{directory.rpartition('/')[2]}/{name}", []).append(path)
        self.by_name.setdefault(name_key(name), []).append(path)
        files = self.directories.get(directory)
        if files is None:
            self.directories[directory] = [path]
            directory = directory_of(directory)
            while directory not in self.directories:
                self.directories[directory] = []
                directory = directory_of(directory)
        else:
            files.append(path)

    def unfolded(self, path: str) -> str:
        """Return the only file that differs from `path` in case alone, or ""."""
        same = self.folded.get(fold(path), ())
        return same[0] if len(same) == 1 else ""

    def front(self, directory: str) -> str:
        """Return the page that stands for a directory: its `index.*` or `README.*`, or ""."""
        known = self._fronts.get(directory)
        if known is None:
            pages = []
            for path in self.directories.get(directory, ()):
                stem, extension = _split(path)
                rank = _FRONT_STEMS.get(stem.rpartition("/")[2].lower())
                extension_rank = _DOC_RANK.get(extension.lower())
                if rank is not None and extension_rank is not None:
                    pages.append((rank, extension_rank, path))
            known = min(pages)[2] if pages else ""
            self._fronts[directory] = known
        return known

    def placed(self, stem: str, endings: Sequence[str]) -> Placed:
        """Return where in the tree `stem` + one of the endings lies. Case counts.

        An ending is an extension, or `/name.ext` for a file that stands for the directory `stem`.
        Of one place's files the one with the earliest ending is taken.
        """
        key = (stem, endings)
        known = self._placed.get(key)
        if known is None:
            known = self._placed[key] = self._place(stem, endings)
        return known

    def _place(self, stem: str, endings: Sequence[str]) -> Placed:
        middles = self._middles.get(endings)
        if middles is None:
            middles = self._middles[endings] = _middles(endings)
        by_prefix: dict[str, tuple[int, str]] = {}
        for middle, ranks in middles.items():
            name = stem + middle
            cut = name.rfind("/", 0, max(name.rfind("/"), 0))
            n = len(name)
            for path in self.by_tail.get(name[cut + 1 :], ()):
                head, extension = _split(path)
                rank = ranks.get(extension)
                if rank is None or not head.endswith(name):
                    continue
                prefix = head[: len(head) - n]
                if prefix and prefix[-1] != "/":
                    continue
                if prefix not in by_prefix or rank < by_prefix[prefix][0]:
                    by_prefix[prefix] = (rank, path)
        return Placed(by_prefix) if by_prefix else _NOWHERE

    def suffix(self, stem: str, endings: Sequence[str], directory: str) -> str:
        """Return the nearest file whose path ends with `stem` + an ending, or ""."""
        return self.placed(stem, endings).nearest(directory)

    def directory_suffix(self, suffix: str, endings: tuple[str, ...], directory: str) -> str:
        """Return the nearest directory whose path ends with `suffix`, or "".

        Only directories with files of one of the endings count. In `suffix`, a dot may stand for
        each slash.
        """
        index = self._directory_suffixes.get(endings)
        if index is None:
            index = self._directory_suffixes[endings] = self._index_directories(endings)
        found = index.get(suffix.replace("/", "."))
        if found is None:
            return ""
        if isinstance(found, list):
            found = index[suffix.replace("/", ".")] = Nearest(found)
        return found.to(directory)

    def _index_directories(self, endings: tuple[str, ...]) -> dict[str, Nearest | list[str]]:
        found: dict[str, list[str]] = {}
        for directory, files in self.directories.items():
            if not directory or not any(path.endswith(endings) for path in files):
                continue
            dotted = directory.replace("/", ".")
            at = 0
            while True:
                found.setdefault(dotted[at:], []).append(directory)
                at = dotted.find(".", at) + 1
                if not at:
                    break
        return dict(found)

    def members(self, directory: str, extensions: Sequence[str], limit: int) -> tuple[str, ...]:
        """Return the files of a directory itself with one of the extensions, first by name."""
        files = self.directories.get(directory, ())
        return tuple([path for path in files if path.endswith(tuple(extensions))][:limit])

    def at(self, stem: str, extensions: Sequence[str]) -> str:
        """Return the first file that is exactly `stem` + one of the extensions, or ""."""
        files = self.files
        for extension in extensions:
            if stem + extension in files:
                return stem + extension
        return ""
