"""Which language a file is in, by its name alone, and what kind of reading that language is."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

__all__ = ["LANGUAGES", "kind_of", "language_of", "named_language"]

_EXTENSIONS_OF = {
    "markdown": "md mdx markdown mdown mkd mkdn mdwn",
    "rst": "rst rest",
    "asciidoc": "adoc asciidoc asc",
    "org": "org",
    "text": "txt text log me",
    "tex": "tex ltx sty cls bib",
    "pdf": "pdf",
    "docx": "docx docm dotx",
    "pptx": "pptx pptm",
    "xlsx": "xlsx xlsm",
    "odt": "odt ott",
    "odp": "odp",
    "ods": "ods",
    "notebook": "ipynb",
    "epub": "epub",
    "rtf": "rtf",
    "mail": "eml",
    "python": "py pyi pyw pyx pxd pxi",
    "javascript": "js jsx mjs cjs es6",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh ino",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru podspec",
    "php": "php php3 php4 php5 phtml",
    "bash": "sh bash zsh ksh bats ebuild",
    "fish": "fish",
    "powershell": "ps1 psm1 psd1",
    "batch": "bat cmd",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc sbt",
    "groovy": "groovy gradle",
    "lua": "lua",
    "perl": "pl pm t",
    "r": "r",
    "julia": "jl",
    "haskell": "hs lhs",
    "ocaml": "ml mli",
    "fsharp": "fs fsi fsx",
    "elm": "elm",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "clojure": "clj cljs cljc edn",
    "lisp": "lisp lsp cl el",
    "scheme": "scm ss rkt",
    "zig": "zig",
    "nim": "nim nims",
    "d": "d",
    "dart": "dart",
    "objc": "m mm",
    "fortran": "f f90 f95 f03 for",
    "pascal": "pas pp",
    "ada": "adb ads",
    "vb": "vb vbs",
    "assembly": "asm s",
    "verilog": "v sv svh",
    "vhdl": "vhd vhdl",
    "solidity": "sol",
    "sql": "sql psql ddl",
    "graphql": "graphql gql graphqls",
    "protobuf": "proto",
    "thrift": "thrift",
    "terraform": "tf tfvars hcl",
    "nix": "nix",
    "cmake": "cmake",
    "makefile": "mk mak",
    "dockerfile": "dockerfile",
    "vue": "vue",
    "svelte": "svelte",
    "css": "css scss sass less styl",
    "html": "html htm xhtml",
    "xml": "xml xsd xsl xslt svg plist",
    "json": "json jsonc json5 jsonl ndjson geojson webmanifest",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf properties editorconfig env",
    "csv": "csv tsv",
    "diff": "diff patch",
}

_LANGUAGE_OF_EXTENSION = MappingProxyType(
    {
        extension: language
        for language, extensions in _EXTENSIONS_OF.items()
        for extension in extensions.split()
    }
)

_LANGUAGE_OF_NAME = MappingProxyType(
    {
        "dockerfile": "dockerfile",
        "containerfile": "dockerfile",
        "makefile": "makefile",
        "gnumakefile": "makefile",
        "bsdmakefile": "makefile",
        "cmakelists.txt": "cmake",
        "rakefile": "ruby",
        "gemfile": "ruby",
        "guardfile": "ruby",
        "vagrantfile": "ruby",
        "podfile": "ruby",
        "brewfile": "ruby",
        "jenkinsfile": "groovy",
        "build.bazel": "python",
        "build": "python",
        "workspace": "python",
        "sconstruct": "python",
        "sconscript": "python",
        "justfile": "makefile",
        "procfile": "yaml",
        ".bashrc": "bash",
        ".bash_profile": "bash",
        ".profile": "bash",
        ".zshrc": "bash",
        "pkgbuild": "bash",
        ".gitignore": "ini",
        ".gitattributes": "ini",
        ".editorconfig": "ini",
    }
)

LANGUAGES = tuple(sorted({*_EXTENSIONS_OF, *_LANGUAGE_OF_NAME.values()}))

_OTHER_NAMES = MappingProxyType(
    {
        "c#": "csharp",
        "f#": "fsharp",
        "golang": "go",
        "objective-c": "objc",
        "plain": "text",
        "shell": "bash",
    }
)

_DOCS = frozenset(
    {"markdown", "rst", "asciidoc", "org", "text", "tex", "html"}
    | {"pdf", "docx", "pptx", "odt", "odp", "notebook", "epub", "rtf", "mail"}
)
_DATA = frozenset({"xlsx", "ods", "css", "xml", "json", "yaml", "toml", "ini", "csv", "diff"})


@lru_cache(maxsize=20_000)
def language_of(path: str) -> str:
    """Name the language of a file from its POSIX path; `"text"` when nothing is known.

    A whole file name (`Makefile`, `Dockerfile.prod`) decides before the extension does; case is
    ignored.
    """
    name = path.rsplit("/", 1)[-1].lower()
    named = _LANGUAGE_OF_NAME.get(name)
    if named is not None:
        return named
    stem, dot, extension = name.rpartition(".")
    if dot and extension in _LANGUAGE_OF_EXTENSION:
        return _LANGUAGE_OF_EXTENSION[extension]
    first = name.split(".", 1)[0]
    if stem and first in {"dockerfile", "containerfile", "makefile", "jenkinsfile"}:
        return _LANGUAGE_OF_NAME[first]
    return "text"


def named_language(name: str) -> str | None:
    """The language that somebody means by its name or by an extension; None if it is neither."""
    name = name.lower().removeprefix(".")
    if name in LANGUAGES:
        return name
    return _OTHER_NAMES.get(name) or _LANGUAGE_OF_EXTENSION.get(name)


def kind_of(language: str) -> str:
    """Sort a language into `"docs"`, `"code"` or `"data"`."""
    if language in _DOCS:
        return "docs"
    return "data" if language in _DATA else "code"
