"""How each language finds the file that a module's name means; paths only, no manifest is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ragx.algo.references.base import Reference
from ragx.algo.references.tree import Tree, ancestors, directory_of, join

__all__ = ["MAX_FILES", "Modules"]

MAX_FILES = 20  # of a package or namespace that is imported as a whole

_Rule = Callable[[Reference, str], tuple[str, ...]]

_PYTHON = (".py", ".pyi", ".pyx")
_PYTHON_INIT = ("/__init__.py", "/__init__.pyi")
_PYTHON_MODULE = (*_PYTHON, *_PYTHON_INIT)
_PYTHON_ROOTS = ("", "src/", "lib/", "python/")
_JS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".svelte", ".vue", ".json",
       ".d.ts")  # fmt: skip
_JS_INDEX = tuple("/index" + extension for extension in _JS)
_JS_MODULE = (*_JS, *_JS_INDEX)
_JS_ALSO = {
    ".js": (".ts", ".tsx", ".jsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".ts"),
    ".cjs": (".cts", ".ts"),
}
_JS_ALIASES = ("@/", "~/", "~~/", "@@/", "#/", "$lib/", "$src/")
_JVM = (".java", ".kt", ".scala", ".kts", ".groovy")
_CSS = (".scss", ".css", ".sass", ".less", ".styl")
_SHELL = (".sh", ".bash", ".zsh", ".fish")
_GO_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gitee.com"})
_C_HEADERS = frozenset(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal"
    " stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath"
    " threads time uchar wchar wctype unistd fcntl poll pthread sched semaphore termios dirent"
    " dlfcn glob grp pwd netdb strings syslog malloc memory getopt regex windows queue new"
    " version".split()
)
_GO_STANDARD = frozenset(
    "archive arena bufio bytes cmp compress container context crypto database debug embed"
    " encoding errors expvar flag fmt go hash html image index io iter log maps math mime net"
    " os path plugin reflect regexp runtime slices sort strconv strings structs sync syscall"
    " testing text time unicode unique unsafe C".split()
)
_PYTHON_STANDARD = frozenset(
    "__future__ _thread abc aifc argparse array ast asynchat asyncio asyncore atexit audioop"
    " base64 bdb binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs"
    " codeop collections colorsys compileall concurrent configparser contextlib contextvars"
    " copy copyreg cProfile crypt csv ctypes curses dataclasses datetime dbm decimal difflib"
    " dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp"
    " fileinput fnmatch fractions ftplib functools gc getopt getpass gettext glob graphlib grp"
    " gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io"
    " ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap"
    " marshal math mimetypes mmap modulefinder msvcrt multiprocessing netrc nntplib ntpath"
    " numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes"
    " pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd"
    " py_compile pyclbr pydoc queue quopri random re readline reprlib resource rlcompleter"
    " runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib"
    " sndhdr socket socketserver spwd sqlite3 ssl stat statistics string stringprep struct"
    " subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile"
    " termios test textwrap threading time timeit tkinter token tokenize tomllib trace"
    " traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu"
    " uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc"
    " zipapp zipfile zipimport zlib zoneinfo".split()
)
_RUST_STANDARD = frozenset({"std", "core", "alloc", "proc_macro", "test"})
_RUST_ROOTS = frozenset({"mod.rs", "lib.rs", "main.rs", "build.rs"})
_CRATE_FILES = ("/lib.rs", "/main.rs")

# Language forms whose modules are dotted names or paths: separator, endings, source roots.
_DOTTED: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "lua": (".", (".lua", "/init.lua"), ("", "lua/", "src/")),
    "haskell": (".", (".hs", ".lhs"), ("", "src/", "lib/", "app/")),
    "elm": (".", (".elm",), ("", "src/")),
    "perl": ("::", (".pm",), ("", "lib/")),
}


def _with_extension(path: str) -> tuple[str, tuple[str, ...]]:
    """Split a path that names its extension: the stem, and what a compiler may find there."""
    stem, dot, extension = path.rpartition(".")
    if not dot or "/" in extension:
        return "", ()
    return stem, (dot + extension, *_JS_ALSO.get(dot + extension, ()))


class Modules:
    """The rules, by form. `roots` maps what a manifest declares to a directory."""

    def __init__(self, tree: Tree, roots: dict[str, str]) -> None:
        self._tree = tree
        self._roots = roots
        self._crates: dict[str, str] | None = None
        self._rules: dict[str, _Rule] = {
            "python": self._python,
            "js": self._js,
            "go": self._go,
            "rust": self._rust,
            "java": self._java,
            "include": self._include,
            "system": self._include,
            "ruby": self._ruby,
            "php": self._php,
            "php-file": self._include,
            "csharp": self._csharp,
            "dart": self._dart,
            "css": self._css,
            "shell": self._shell,
            "tex": self._tex,
            "cmake": self._cmake,
            "nix": self._nix,
            "terraform": self._terraform,
        }
        for form in _DOTTED:
            self._rules[form] = self._dotted

    def rule(self, form: str) -> _Rule | None:
        """Return the rule for a form; None for a form without one."""
        return self._rules.get(form)

    def _from_root(self, name: str, separator: str) -> tuple[str, str] | None:
        """Split a name at the longest declared root: its directory, and the rest as a path."""
        if not self._roots:
            return None
        end = len(name)
        while end > 0:
            directory = self._roots.get(name[:end])
            if directory is not None:
                return directory, name[end:].replace(separator, "/").strip("/")
            end = name.rfind(separator, 0, end)
        return None

    def _climb(
        self, stem: str, endings: Sequence[str], directory: str, roots: Sequence[str]
    ) -> str:
        """Find `stem` + ending in a directory above the source, or in a source root there."""
        return self._tree.placed(stem, endings).climb(directory, roots)

    # --- Python

    def _python(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        names = reference.fragment.split() if reference.fragment else []
        parts = target.lstrip(".")
        directory = directory_of(source)
        stem = parts.replace(".", "/")
        if len(parts) < len(target):
            for _ in range(len(target) - len(parts) - 1):
                if not directory:
                    return ()
                directory = directory_of(directory)
            module = f"{directory}/{stem}".strip("/") if stem else directory
            return self._python_names(module, names)
        declared = self._from_root(target, ".")
        if declared is not None:
            inside = self._python_names("/".join(filter(None, declared)), names)
            if inside:
                return inside
        found = self._python_module(stem, directory)
        if found:
            module = found[: -len("/__init__.py")] if "/__init__.py" in found else found
            module = module.rpartition(".")[0] if module == found else module
            return self._python_names(module, names)
        # A namespace package has no file of its own, its modules have.
        modules = [self._python_module(f"{stem}/{name}", directory) for name in names]
        return tuple(dict.fromkeys(filter(None, modules)))

    def _python_names(self, module: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the modules that names taken from a module are, and else the module itself."""
        at = self._tree.at
        prefix = module + "/" if module else ""
        own = at(module, _PYTHON) or at(module, _PYTHON_INIT) if module else ""
        own = own or ("" if module else at("__init__", _PYTHON))
        if not names:
            return (own,) if own else ()
        found: dict[str, None] = {}
        is_package = module in self._tree.directories
        for name in names:
            deeper = ""
            if is_package:
                deeper = at(prefix + name, _PYTHON) or at(prefix + name, _PYTHON_INIT)
            if deeper or own:
                found[deeper or own] = None
        return tuple(found)

    def _python_module(self, stem: str, directory: str) -> str:
        tree = self._tree
        tail = stem[stem.rfind("/", 0, max(stem.rfind("/"), 0)) + 1 :]
        last = stem.rpartition("/")[2]
        if tail not in tree.by_tail and f"{last}/__init__" not in tree.by_tail:
            return ""
        first, _, rest = stem.partition("/")
        if first in _PYTHON_STANDARD:
            # Only what would really hide the standard module: a root's, or a script's sibling.
            package = f"{directory}/__init__.py".lstrip("/") in tree.files
            bases = ["", "src/", "lib/"] if package else [directory + "/", "", "src/", "lib/"]
            placed = tree.placed(stem, _PYTHON_MODULE)
            return next(filter(None, (placed.at(base.lstrip("/")) for base in bases)), "")
        placed = tree.placed(stem, _PYTHON_MODULE)
        found = placed.climb(directory, _PYTHON_ROOTS)
        if found or rest:
            return found or placed.nearest(directory)
        # A single name elsewhere counts where a project's layout makes it importable.
        return tree.suffix(f"src/{first}/__init__", _PYTHON, directory) or tree.suffix(
            f"{first}/{first}/__init__", _PYTHON, directory
        )

    # --- JavaScript and TypeScript

    def _js(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        if target[0] in "./":
            base = directory if target[0] == "." else ""
            path = join(base, target)
            found = self._js_file(path) if path is not None else ""
            return (found,) if found else ()
        declared = self._from_root(target, "/")
        if declared is not None:
            root, rest = declared
            for middle in ("", "src/"):
                path = join(root, middle + rest) if middle + rest else root
                found = self._js_file(path) if path is not None else ""
                if found:
                    return (found,)
            return ()
        alias = next((a for a in _JS_ALIASES if target.startswith(a)), "")
        rest = target[len(alias) :].strip("/")
        if not rest or (not alias and "/" not in rest):
            return ()
        if "./" in rest or "//" in rest:
            joined = join("", rest)
            if not joined:
                return ()
            rest = joined
        found = self._js_alias(alias, rest, directory) if alias else ""
        if not found and "/" in rest:
            found = self._js_suffix(rest, directory)
        return (found,) if found else ()

    def _js_file(self, path: str) -> str:
        """Find a file the way bundlers do: as it is, with an extension, as a directory."""
        tree = self._tree
        if path in tree.files:
            return path
        found = tree.at(path, _JS) if path else ""
        if not found and path in tree.directories:
            found = tree.at(path, _JS_INDEX) if path else tree.at("index", _JS)
        if not found:
            stem, dot, extension = path.rpartition(".")
            if dot:
                found = tree.at(stem, _JS_ALSO.get("." + extension, ()))
        return found or tree.unfolded(path)

    def _js_alias(self, alias: str, rest: str, directory: str) -> str:
        roots = ("src/lib/", "lib/") if alias == "$lib/" else ("src/", "", "app/")
        found = self._tree.placed(rest, _JS_MODULE).climb(directory, roots)
        if not found:
            stem, endings = _with_extension(rest)
            found = self._tree.placed(stem, endings).climb(directory, roots) if stem else ""
        return found

    def _js_suffix(self, rest: str, directory: str) -> str:
        found = self._tree.suffix(rest, _JS_MODULE, directory)
        if not found:
            stem, endings = _with_extension(rest)
            found = self._tree.suffix(stem, endings, directory) if stem else ""
        return found

    # --- Go

    def _go(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target.strip("/")
        directory = directory_of(source)
        if not target:
            return ()
        if target[0] == ".":
            path = join(directory, target)
            return self._go_package(path) if path is not None else ()
        declared = self._from_root(target, "/")
        if declared is not None:
            path = join(declared[0], declared[1]) if declared[1] else declared[0]
            return self._go_package(path) if path is not None else ()
        parts = target.split("/")
        if parts[0] in _GO_STANDARD:
            return ()
        tree = self._tree
        # The longest end of the import path that is a directory: its parts, without the host's.
        for first in range(len(parts) - 1):
            found = tree.directory_suffix("/".join(parts[first:]), (".go",), directory)
            files = self._go_package(found) if found else ()
            if files:
                return files
        # A single part is too little, unless it is all that follows the module's own name.
        n_module = 3 if parts[0] in _GO_HOSTS else 2 if "." in parts[0] else 1
        if len(parts) == n_module + 1 and parts[-1] in tree.directories:
            return self._go_package(parts[-1])
        return ()

    def _go_package(self, directory: str) -> tuple[str, ...]:
        files = self._tree.directories.get(directory, ())
        found = [path for path in files if path.endswith(".go") and not path.endswith("_test.go")]
        return tuple(found[:MAX_FILES])

    # --- Rust

    def _rust(self, reference: Reference, source: str) -> tuple[str, ...]:
        parts = reference.target.split("::")
        if not parts[0]:
            parts = parts[1:]
        names = reference.fragment.split() if reference.fragment else []
        directory, _, file = source.rpartition("/")
        stem = file.removesuffix(".rs")
        own = directory if file in _RUST_ROOTS else f"{directory}/{stem}".lstrip("/")
        first = parts[0] if parts else ""
        if first == "crate":
            root = self._crate_root(directory)
            return self._rust_names(root, parts[1:], names) if root is not None else ()
        if first in {"self", "super"}:
            base = own
            rest = parts[1:] if first == "self" else parts
            while rest and rest[0] == "super":
                if not base:
                    return ()
                base = directory_of(base)
                rest = rest[1:]
            found = self._rust_names(base, rest, names, strict=first == "self" and bool(rest))
            if not found and first == "self" and rest:
                # The root of a binary, test or example: its modules are siblings.
                found = self._rust_names(directory, rest, names, strict=True)
            return found
        if first in _RUST_STANDARD or not first:
            return ()
        for base in (own, directory):
            if self._rust_file(f"{base}/{first}".lstrip("/")):
                return self._rust_names(base, parts, names)
        declared = self._from_root("::".join(parts), "::")
        if declared is not None:
            rest = declared[1].split("/") if declared[1] else []
            source_root = f"{declared[0]}/src".lstrip("/")
            return self._rust_names(source_root, rest, names)
        crate = self._crate(first)
        return self._rust_names(crate, parts[1:], names) if crate else ()

    def _rust_file(self, module: str) -> str:
        """Return the file of the module whose children lie in the directory `module`."""
        files = self._tree.files
        if module + ".rs" in files:
            return module + ".rs"
        if module + "/mod.rs" in files:
            return module + "/mod.rs"
        return self._tree.at(module, _CRATE_FILES)

    def _rust_names(
        self, base: str, parts: Sequence[str], names: Sequence[str], *, strict: bool = False
    ) -> tuple[str, ...]:
        """Follow parts from a module down as far as files go; `strict` asks for the first one."""
        prefix = base + "/" if base else ""
        module = base
        own = self._rust_file(base)
        for index, part in enumerate(parts):
            deeper = self._rust_file(prefix + part)
            if not deeper and prefix + part not in self._tree.directories:
                if strict and not index:
                    return ()
                names = ()
                break
            module = prefix + part
            prefix = module + "/"
            own = deeper or own
        found: dict[str, None] = {}
        for name in names:
            deeper = self._rust_file(prefix + name)
            if deeper or own:
                found[deeper or own] = None
        if not names and own:
            found[own] = None
        return tuple(found)

    def _crate_root(self, directory: str) -> str | None:
        for base in ancestors(directory):
            if base == "src" or base.endswith("/src"):
                return base
            source = base + "/src" if base else "src"
            if self._tree.at(source, _CRATE_FILES):
                return source
        return None

    def _crate(self, name: str) -> str:
        """Return the source root of a crate of the workspace, by its directory's name."""
        if self._crates is None:
            self._crates = {}
            for directory in sorted(self._tree.directories, key=lambda path: (len(path), path)):
                parent, _, last = directory.rpartition("/")
                if last == "src" and parent and directory + "/lib.rs" in self._tree.files:
                    key = parent.rpartition("/")[2].replace("-", "_")
                    self._crates.setdefault(key, directory)
        return self._crates.get(name.replace("-", "_"), "")

    # --- Java, Kotlin, Scala

    def _java(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        path = target.replace(".", "/")
        if target.endswith(".*"):
            package = path[:-2]
            if "/" in package:
                found = self._tree.directory_suffix(package, _JVM, directory)
                files = self._tree.members(found, _JVM, MAX_FILES) if found else ()
                if files:
                    return files
                found = self._tree.suffix(package, _JVM, directory)
                return (found,) if found else ()
            return self._tree.members(package, _JVM, MAX_FILES)
        if "/" not in path:
            found = self._climb(path, _JVM, directory, ("",))
            return (found,) if found else ()
        while "/" in path:
            found = self._tree.suffix(path, _JVM, directory)
            if found:
                return (found,)
            # `a.b.Outer.Inner` and members of objects lie in `Outer`'s file.
            path = directory_of(path)
            if not path.rpartition("/")[2][:1].isupper():
                break
        return ()

    # --- C, C++, and all that includes by path

    def _include(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target.replace("\\", "/")
        directory = directory_of(source)
        tree = self._tree
        path = join("" if target.startswith("/") else directory, target)
        if path in tree.files and reference.form != "system":
            return (path,) if path else ()
        stem, dot, extension = target.rpartition(".")
        if not dot or "/" in extension:
            stem, extension = target, ""
        while stem.startswith(("./", "../", "/")):
            stem = stem.partition("/")[2]
        if not stem:
            return ()
        ending = "." + extension if dot and extension else ""
        if reference.form == "system" and "/" not in stem and stem in _C_HEADERS:
            found = tree.suffix("include/" + stem, (ending,), directory)
            return (found,) if found else ()
        if "./" in stem or "//" in stem:
            joined = join("", stem)
            if not joined:
                return ()
            stem = joined
        found = tree.suffix(stem, (ending,), directory)
        if not found and path is not None:
            found = tree.unfolded(path)
        return (found,) if found else ()

    # --- Others

    def _ruby(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target.removesuffix(".rb")
        directory = directory_of(source)
        if target.startswith((".", "/")):
            path = join("" if target[0] == "/" else directory, target)
            found = self._tree.at(path, (".rb", "")) if path else ""
            return (found,) if found else ()
        found = self._climb(target, (".rb",), directory, ("", "lib/", "app/", "spec/", "test/"))
        if not found and "/" in target:
            found = self._tree.suffix(target, (".rb",), directory)
        return (found,) if found else ()

    def _php(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        declared = self._from_root(target, "\\")
        if declared is not None:
            found = self._tree.at(f"{declared[0]}/{declared[1]}".strip("/"), (".php",))
            return (found,) if found else ()
        parts = target.split("\\")
        if len(parts) == 1:
            found = self._tree.at(f"{directory}/{target}".lstrip("/"), (".php",))
            return (found,) if found else ()
        for first in range(len(parts) - 1):
            found = self._tree.suffix("/".join(parts[first:]), (".php",), directory)
            if found:
                return (found,)
        if len(parts) == 2:  # PSR-4 maps the prefix `App` itself to a source root
            found = self._climb(parts[1], (".php",), directory, ("src/", "app/", "lib/"))
            return (found,) if found else ()
        return ()

    def _csharp(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        found = self._tree.suffix(target.replace(".", "/"), (".cs",), directory)
        if found and "." in target:
            return (found,)
        parts = target.split(".")
        external = parts[0] in {"System", "Microsoft", "Windows"}
        # The whole name first, then without its first parts, but never a single one.
        for first in range(1 if external else max(len(parts) - 1, 1)):
            found = self._tree.directory_suffix(".".join(parts[first:]), (".cs",), directory)
            if found:
                return self._tree.members(found, (".cs",), MAX_FILES)
        if len(parts) > 1 and not external:
            # `App.Models` where a directory that the source is in is the project `App`.
            for base in ancestors(directory):
                path = f"{base}/{parts[-1]}" if base else parts[-1]
                if path in self._tree.directories:
                    return self._tree.members(path, (".cs",), MAX_FILES)
        return ()

    def _dart(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        if not target.startswith("package:"):
            path = join(directory, target)
            return (path,) if path in self._tree.files and path else ()
        package, _, rest = target[len("package:") :].partition("/")
        stem = rest.removesuffix(".dart")
        if not rest:
            return ()
        found = self._tree.suffix(f"{package}/lib/{stem}", (".dart",), directory)
        if not found:
            # A package's own files import each other by its name, which no directory need have.
            for base in ancestors(directory):
                if (base + "/lib" if base else "lib") in self._tree.directories:
                    found = self._tree.at(f"{base}/lib/{stem}".lstrip("/"), (".dart",))
                    break
        return (found,) if found else ()

    def _css(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        for base in dict.fromkeys((directory, "")):
            path = join("" if target[0] == "/" else base, target)
            if not path:
                continue
            parent, slash, last = path.rpartition("/")
            for stem in (path, f"{parent}{slash}_{last}", f"{path}/_index", f"{path}/index"):
                found = stem if stem in self._tree.files else self._tree.at(stem, _CSS)
                if found:
                    return (found,)
        stem = target.lstrip("./@")
        found = self._tree.suffix(stem, _CSS, directory) if "/" in stem else ""
        return (found,) if found else ()

    def _shell(self, reference: Reference, source: str) -> tuple[str, ...]:
        target = reference.target
        directory = directory_of(source)
        for base in dict.fromkeys((directory, "")):
            path = join("" if target[0] == "/" else base, target)
            if path and path in self._tree.files:
                return (path,)
        if target[0] == "/":
            return ()
        return self._include(reference, source)

    def _tex(self, reference: Reference, source: str) -> tuple[str, ...]:
        endings = (".tex", ".bib", ".sty", "")
        for base in ancestors(directory_of(source)):
            path = join(base, reference.target)
            found = self._tree.at(path, ("", *endings)) if path else ""
            if found:
                return (found,)
        return ()

    def _cmake(self, reference: Reference, source: str) -> tuple[str, ...]:
        for base in ancestors(directory_of(source)):
            path = join(base, reference.target)
            found = self._tree.at(path, ("", "/CMakeLists.txt", ".cmake")) if path else ""
            if found:
                return (found,)
        found = self._climb(reference.target, (".cmake",), directory_of(source), ("cmake/",))
        return (found,) if found else ()

    def _nix(self, reference: Reference, source: str) -> tuple[str, ...]:
        path = join(directory_of(source), reference.target)
        found = self._tree.at(path, ("", "/default.nix")) if path else ""
        return (found,) if found else ()

    def _terraform(self, reference: Reference, source: str) -> tuple[str, ...]:
        path = join(directory_of(source), reference.target)
        return self._tree.members(path, (".tf",), MAX_FILES) if path is not None else ()

    def _dotted(self, reference: Reference, source: str) -> tuple[str, ...]:
        separator, endings, roots = _DOTTED[reference.form]
        directory = directory_of(source)
        target = reference.target.removesuffix(endings[0])
        stem = target.replace(separator, "/").strip("/")
        if not stem:
            return ()
        found = self._climb(stem, endings, directory, roots)
        if not found and "/" in stem:
            found = self._tree.suffix(stem, endings, directory)
        return (found,) if found else ()
