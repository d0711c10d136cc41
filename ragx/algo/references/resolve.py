"""Which files of a corpus a reference means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ragx.algo.references import modules
from ragx.algo.references.base import Reference, decode_percent
from ragx.algo.references.tree import (
    DOC_EXTENSIONS,
    Nearest,
    Tree,
    ancestors,
    directory_of,
    join,
    name_key,
)

__all__ = ["Resolver"]

_PAGE_EXTENSIONS = frozenset(DOC_EXTENSIONS)
_BUILT = (".html", ".htm")
_SOURCES_OF_BUILT = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".org", ".txt")


class Resolver:
    """Finds the files that references mean among all paths of a corpus.

    Args:
        paths: all files, root-relative POSIX; their order does not matter.
        names: more names of pages (titles, aliases, labels) and the files they stand for.
        roots: what the first part of a module's name stands for, where a manifest tells it: a Go
            module, an npm package, a crate or a PHP namespace -> its directory ("" is the root).

    Building is linear in the paths; a look-up costs about the depth of a path.
    """

    def __init__(
        self,
        paths: Iterable[str],
        *,
        names: Mapping[str, Sequence[str]] | None = None,
        roots: Mapping[str, str] | None = None,
    ) -> None:
        self._tree = Tree(paths)
        self._names: dict[str, list[str]] = {}
        for name, pages in (names or {}).items():
            known = self._names.setdefault(name_key(name), [])
            known.extend(page for page in pages if page in self._tree.files)
        self._pages: dict[str, Nearest | None] = {}
        self._titles: dict[str, Nearest | None] = {}
        self._modules = modules.Modules(self._tree, dict(roots or {}))

    def resolve(self, reference: Reference, source: str) -> tuple[str, ...]:
        """Find the files that `reference`, read in the file `source`, means.

        Returns:
            Paths of the corpus, most often one; `()` when it leads outside or nowhere. An empty
            target is the source itself.
        """
        target = reference.target
        if not target:
            return (source,) if source in self._tree.files else ()
        form = reference.form
        if form == "path":
            path = self._path(target, directory_of(source))
            return (path,) if path else ()
        if form == "wiki":
            path = self._wiki(target, directory_of(source))
            return (path,) if path else ()
        if form == "ref":
            path = self._titled(target, directory_of(source)) or self._page(
                target, directory_of(source)
            )
            return (path,) if path else ()
        rule: Callable[[Reference, str], tuple[str, ...]] | None = self._modules.rule(form)
        return rule(reference, source) if rule is not None else ()

    def _path(self, target: str, directory: str) -> str:
        """Follow a path as documentation writes it."""
        if "\\" in target and not self._reaches(target, directory):
            target = target.replace("\\", "/")
        found = self._reaches(target, directory)
        if found:
            return found
        plain = target.partition("?")[0]
        head, colon, line = plain.rpartition(":")
        if colon and line.isdigit():
            plain = head.rpartition(":")[0] if head.rpartition(":")[2].isdigit() else head
        return self._reaches(plain, directory) if plain and plain != target else ""

    def _reaches(self, target: str, directory: str) -> str:
        if target[0] == "@" and target.startswith("@site/"):
            target = target[5:]
        if target[0] != "/":
            path = join(directory, target)
            return self._file(path) if path is not None else ""
        # From the corpus root, or from the root of a site or project that the source is in.
        path = join("", target)
        if path is None:
            return ""
        found = self._file(path)
        if found or not directory:
            return found
        for base in reversed([*ancestors(directory)][:-1]):
            found = self._file(f"{base}/{path}" if path else base)
            if found:
                return found
        return ""

    def _file(self, path: str) -> str:
        """Find the file at a normalised path, with the liberties that links take."""
        tree = self._tree
        if path in tree.files:
            return path
        found = tree.at(path, DOC_EXTENSIONS)
        if found:
            return found
        if path in tree.directories:
            found = tree.front(path)
            if found:
                return found
        stem, dot, extension = path.rpartition(".")
        built = bool(dot) and "." + extension in _BUILT
        if built:
            found = tree.at(stem, _SOURCES_OF_BUILT)
            if not found and (stem == "index" or stem.endswith("/index")):
                found = tree.front(directory_of(stem))
            if found:
                return found
        found = tree.unfolded(path)
        if found:
            return found
        for ending in DOC_EXTENSIONS:
            found = tree.unfolded(path + ending)
            if found:
                return found
        if built:
            for ending in _SOURCES_OF_BUILT:
                found = tree.unfolded(stem + ending)
                if found:
                    return found
        return ""

    def _wiki(self, target: str, directory: str) -> str:
        path = join("", target)
        if path is None or target.startswith("."):
            path = join(directory, target)
            return self._file(path) if path else ""
        if not path:
            return ""
        tree = self._tree
        files = tree.files
        if path in files:
            return path
        found = tree.at(path, DOC_EXTENSIONS)
        if not found and directory:
            near = f"{directory}/{path}"
            found = near if near in files else tree.at(near, DOC_EXTENSIONS)
        if found:
            return found
        found = self._page(path, directory) or self._titled(target, directory)
        if not found and "%" in path:
            decoded = decode_percent(path)
            found = self._wiki(decoded, directory) if decoded != path else ""
        return found

    def _page(self, name: str, directory: str) -> str:
        """Find a page by its file's stem, or by the end of its path."""
        known = self._pages
        if name not in known:
            known[name] = self._find_page(name)
        nearest = known[name]
        return nearest.to(directory) if nearest is not None else ""

    def _find_page(self, name: str) -> Nearest | None:
        folder, _, last = name.rpartition("/")
        stem, dot, extension = last.rpartition(".")
        candidates = list(self._tree.by_name.get(name_key(last), ()))
        if stem and dot:
            ending = "." + extension.lower()
            candidates += [
                path
                for path in self._tree.by_name.get(name_key(stem), ())
                if path.lower().endswith(ending)
            ]
        if folder:
            tail = "/" + _path_key(folder)
            candidates = [
                path for path in candidates if ("/" + _path_key(directory_of(path))).endswith(tail)
            ]
        pages = [path for path in candidates if _is_page(path)]
        candidates = pages or candidates
        return Nearest(candidates) if candidates else None

    def _titled(self, name: str, directory: str) -> str:
        key = name_key(name)
        if key not in self._names:
            return ""
        if key not in self._titles:
            paths = sorted(set(self._names[key]))
            self._titles[key] = Nearest(paths) if paths else None
        nearest = self._titles[key]
        return nearest.to(directory) if nearest is not None else ""


def _path_key(path: str) -> str:
    return "/".join(map(name_key, path.split("/")))


def _is_page(path: str) -> bool:
    return "." + path.rpartition(".")[2].lower() in _PAGE_EXTENSIONS
