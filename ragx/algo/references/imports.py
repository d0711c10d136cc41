"""Imports and includes of source code, read with one pass of patterns per language.

A pass matches comments and strings as well as the words that may start an import, so that a word
inside either is never taken for one; no grammar is needed. A pass ends at the last place where
such a word stands, for most files right after their head.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ragx.algo.references.base import (
    Reference,
    is_external,
    line_before,
    mask,
    trimmed_end,
)
from ragx.algo.references.rust import rust_imports

__all__ = ["import_references"]

_LINE_COMMENT = r"//[^\n]*+"
_BLOCK_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
_HASH_COMMENT = r"#[^\n]*+"
_DOUBLE = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
_SINGLE = r"'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?"
_CHARACTER = r"'(?:\\.|[^'\\\n])'"
_BACKTICK = r"`[^`\\]*+(?:\\.[^`\\]*+)*+`?"
_TRIPLE_DOUBLE = r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:""")?'
_TRIPLE_SINGLE = r"'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:''')?"


def _pass(*patterns: str) -> re.Pattern[str]:
    # Each alternative starts with a literal: the engine then skips to the next such character.
    return re.compile("|".join(patterns), re.S)


_C_LIKE = (_LINE_COMMENT, _BLOCK_COMMENT)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def _words(pattern: re.Pattern[str], text: str, *words: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` that are one of `words` outside comments and strings."""
    last = max(text.rfind(word) for word in words)
    if last < 0:
        return
    end = min(len(text), last + max(map(len, words)))
    for match in pattern.finditer(text, 0, end):
        first = text[match.start()]
        if first.isalpha() or first in "@\\":
            yield match


def _starts_line(text: str, offset: int, after: str = "") -> bool:
    """Tell whether only white space, or a character of `after`, stands before in the line."""
    last = text[offset - 1 : offset]
    if not last or last == "\n":
        return True
    if not (last in " \t\r\f\ufeff" or last in after):
        return False
    before = line_before(text, offset).rstrip(" \t\r\f")
    return not before or before[-1] in after or before == "\ufeff"


# --- Python

_PYTHON = _pass(
    _HASH_COMMENT, _TRIPLE_DOUBLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE, r"from\b", r"import\b"
)
_PY_GAP = r"(?:[ \t\f]|\\\r?\n)*+"
_PY_FROM = re.compile(
    rf"from{_PY_GAP}(\.[. \t]*+(?!import\b)[\w.]*+|\.[. \t]*+|[A-Za-z_][\w.]*+)"
    rf"{_PY_GAP}import\b{_PY_GAP}"
    r"(?:\(([^()]*+(?:\([^()\n]*+\)[^()]*+)*+)\)|((?:[^\n;#()\\]|\\\r?\n)++))"
)
_PY_IMPORT = re.compile(r"import\b((?:[^\n;#()\\]|\\\r?\n)++)")
_PY_NAME = re.compile(r"([\w.]+|\*)(?:\s+as\s+\w+)?")


def _python(text: str) -> list[Reference]:
    found: list[Reference] = []
    done = 0
    for word in _words(_PYTHON, text, "import"):
        start = word.start()
        if start < done or not _starts_line(text, start, ";:"):
            continue
        if word[0] == "from":
            match = _PY_FROM.match(text, start)
            if match is None:
                continue
            names = []
            body = match[2] if match[2] is not None else match[3]
            for row in body.replace("\\\n", " ").replace("\\\r\n", " ").split("\n"):
                for item in row.partition("#")[0].split(","):
                    name = _PY_NAME.fullmatch(item.strip())
                    if name and name[1] != "*":
                        names.append(name[1])
            done = trimmed_end(text, start, match.end())
            module = "".join(match[1].split())
            found.append(Reference("import", module, "python", " ".join(names), start, done))
        else:
            match = _PY_IMPORT.match(text, start)
            if match is None:
                continue
            done = trimmed_end(text, start, match.end())
            for item in match[1].replace("\\", " ").split(","):
                name = _PY_NAME.fullmatch(item.strip())
                if name and name[1] != "*":
                    found.append(Reference("import", name[1], "python", "", start, done))
    return found


# --- JavaScript, TypeScript, Vue, Svelte

_JAVASCRIPT = _pass(
    *_C_LIKE, _DOUBLE, _SINGLE, _BACKTICK, r"import\b", r"export\b", r"from\b", r"require\b"
)
_JS_TEXT = r"(['\"])([^'\"\n]{1,500}+)"
_JS_CALL = re.compile(
    rf"\w+\s{{0,99}}\(\s{{0,99}}(?:/\*[^*]{{0,200}}\*/\s*)?{_JS_TEXT}\1\s{{0,99}}[,)]"
)
_JS_BARE = re.compile(rf"import\s{{0,99}}{_JS_TEXT}\1")
_JS_FROM = re.compile(rf"from\s{{0,99}}{_JS_TEXT}\1")
_JS_COMMENT = re.compile(rf"{_LINE_COMMENT}|{_BLOCK_COMMENT}", re.S)
_JS_CLAUSE = re.compile(r"[\w$\s{},*\"'-]*+")
_JS_NAMES = re.compile(r"(?:\*\s*as\s+[\w$]+)|(?:type\s+)?([A-Za-z_$][\w$]*)(?:\s+as\s+[\w$]+)?")
_MAX_JS_CLAUSE = 20_000
_SCRIPT = re.compile(r"<script\b[^>]{0,500}>", re.I)
_STYLE = re.compile(r"<style\b[^>]{0,500}>", re.I)


def _javascript(text: str) -> list[Reference]:
    found: list[Reference] = []
    pending = -1
    done = 0
    for word in _words(_JAVASCRIPT, text, "import", "from", "require"):
        start = word.start()
        if start < done or (start and (text[start - 1].isalnum() or text[start - 1] in "_$.")):
            continue
        name = word[0]
        if name == "export":
            pending = start
            continue
        if name == "from":
            match = _JS_FROM.match(text, start) if pending >= 0 else None
            if match:
                names = _js_names(text[pending:start])
                if names is not None:
                    done = match.end()
                    _append_js(found, match[2], names, pending, done)
                pending = -1
            continue
        match = _JS_BARE.match(text, start) if name == "import" else None
        match = match or _JS_CALL.match(text, start)
        if match:
            done = match.end() - text.endswith(",", start, match.end())
            _append_js(found, match[2], "", start, trimmed_end(text, start, done))
            pending = -1
        elif name == "import":
            pending = start
    return found


def _js_names(clause: str) -> str | None:
    """Return the names between `import` and `from`; None when it is no import clause."""
    if len(clause) > _MAX_JS_CLAUSE:
        return None
    if "/" in clause:
        clause = _JS_COMMENT.sub(" ", clause)
    if not _JS_CLAUSE.fullmatch(clause):
        return None
    clause = clause.strip()[len("import") :].strip()  # `export` is as long
    if clause.startswith("type ") and not clause.startswith("type from"):
        clause = clause[5:]
    names = []
    for item in clause.replace("{", ",").replace("}", ",").split(","):
        match = _JS_NAMES.fullmatch(item.strip())
        if match and match[1] and match[1] != "default":
            names.append(match[1])
    return " ".join(names)


def _append_js(found: list[Reference], target: str, names: str, start: int, end: int) -> None:
    target = target.partition("?")[0]
    if target and (not is_external(target)) and "\0" not in target:
        found.append(Reference("import", target, "js", names, start, end))


def _component(text: str) -> list[Reference]:
    """Read the scripts and styles of a Vue or Svelte file, and what their tags' `src` names."""
    scripts = _elements(text, _SCRIPT, "</script")
    styles = _elements(text, _STYLE, "</style")
    found = _javascript(_only(text, scripts)) if scripts else []
    if styles:
        found += _css(_only(text, styles))
    for start, _ in scripts + styles:
        opening = text.rfind("<", 0, start)
        source = re.search(r"\ssrc\s*=\s*[\"']([^\"']{1,500})[\"']", text[opening:start])
        if source:
            _append_js(found, source[1], "", opening, start)
    return found


def _elements(text: str, opening: re.Pattern[str], closing: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    at = 0
    while True:
        match = opening.search(text, at)
        if match is None:
            return ranges
        end = text.find(closing, match.end())
        at = len(text) if end < 0 else end
        ranges.append((match.end(), at))


def _only(text: str, ranges: list[tuple[int, int]]) -> str:
    """Blank out all but the given ranges."""
    outside = []
    done = 0
    for start, end in ranges:
        outside.append((done, start))
        done = end
    return mask(text, [*outside, (done, len(text))])


# --- Go

_GO = _pass(*_C_LIKE, _DOUBLE, r"`[^`]*+`?", _CHARACTER, r"import\b", r"\)")
_GO_DECLARATION = re.compile(r"^(?:func|type|var|const)\b", re.M)
_GO_IMPORT = re.compile(r"import[ \t]*(?:(\()|(?:[\w.]+[ \t]+)?([\"`])([^\"`\n]{1,500}+)\2)")


def _go(text: str) -> list[Reference]:
    found: list[Reference] = []
    last = text.rfind("import")
    if last < 0:
        return found
    # A grouped import may go on to the first declaration; all imports stand before that.
    first = _GO_DECLARATION.search(text, last)
    block = False
    done = 0
    for match in _GO.finditer(text, 0, first.start() if first else len(text)):
        start = match.start()
        if start < done:
            continue
        sign = text[start]
        if sign == ")":
            block = False
        elif sign == "i":
            if not _starts_line(text, start, ";"):
                continue
            spec = _GO_IMPORT.match(text, start)
            if spec is None:
                continue
            block = spec[1] is not None
            if not block:
                done = spec.end()
                found.append(Reference("import", spec[3], "go", "", start, done))
        elif block and sign in '"`' and len(match[0]) > 2 and match[0][-1] == sign:
            before = line_before(text, start).rpartition(";")[2]
            alias = before.strip(" \t(")
            alias = alias.removeprefix("import").strip(" \t(")
            if alias and not re.fullmatch(r"[\w.]+", alias):
                alias = ""
            begin = text.rfind(alias, 0, start) if alias else start
            found.append(Reference("import", match[0][1:-1], "go", "", begin, match.end()))
    return found


# --- Java, Kotlin, Scala, Groovy

_JVM = _pass(*_C_LIKE, _TRIPLE_DOUBLE, _DOUBLE, _CHARACTER, r"import\b")
_JVM_IMPORT = re.compile(
    r"import[ \t]+(static[ \t]+)?([A-Za-z_$`][\w$.`]*+\*?)"
    r"(?:(?<=\.)\{([^{}]{0,3000}+)\}|[ \t]+as[ \t]+[\w`]+)?"
)


def _jvm(text: str) -> list[Reference]:
    found: list[Reference] = []
    for word in _words(_JVM, text, "import"):
        start = word.start()
        if not _starts_line(text, start, ";"):
            continue
        match = _JVM_IMPORT.match(text, start)
        if match is None:
            continue
        name = match[2].replace("`", "")
        if match[3] is not None:
            items = [re.split(r"\s*=>|\s+as\s+", item)[0].strip() for item in match[3].split(",")]
            targets = [
                name + ("*" if item in {"_", "*"} else item)
                for item in items
                if item in {"_", "*"} or _IDENTIFIER.fullmatch(item)
            ]
        else:
            targets = [name[:-1] + "*" if name.endswith("._") else name]
        for target in targets:
            fragment = ""
            if match[1]:
                target, _, fragment = target.rpartition(".")
            target = target.strip(".")
            if target:
                names = "" if fragment == "*" else fragment
                found.append(Reference("import", target, "java", names, start, match.end()))
    return found


# --- C, C++, Objective-C

_C_INCLUDE = re.compile(
    r"[ \t]*(?:include|include_next|import)[ \t]*(?:\"([^\"\n]{1,500}+)\"|<([^<>\n]{1,500}+)>)"
)
_C = _pass(*_C_LIKE, _DOUBLE, _CHARACTER, "#")


def _c(text: str) -> list[Reference]:
    found: list[Reference] = []
    last = text.rfind("#")
    for match in _C.finditer(text, 0, last + 1):
        start = match.start()
        if text[start] != "#" or not _starts_line(text, start, "/"):
            continue
        include = _C_INCLUDE.match(text, start + 1)
        if include:
            form = "include" if include[1] else "system"
            target = include[1] or include[2]
            found.append(Reference("import", target, form, "", start, include.end()))
    return found


# --- C#, PHP, Dart, CSS

_CSHARP = _pass(
    *_C_LIKE, _TRIPLE_DOUBLE, r'@"(?:[^"]++|"")*+"?', _DOUBLE, _CHARACTER, r"using\b", r"global\b"
)
_CSHARP_USING = re.compile(
    r"(?:global[ \t]+)?using[ \t]+(static[ \t]+)?(?:\w+[ \t]*=[ \t]*)?(?:global::)?"
    r"([A-Za-z_][\w.]*+)(?:<[^<>;\n]{0,200}>)?[ \t]*;"
)


def _csharp(text: str) -> list[Reference]:
    found: list[Reference] = []
    done = 0
    for word in _words(_CSHARP, text, "using"):
        start = word.start()
        if start < done or not _starts_line(text, start, ";{"):
            continue
        match = _CSHARP_USING.match(text, start)
        if match:
            done = match.end()
            found.append(Reference("import", match[2], "csharp", "", start, done))
    return found


_PHP = _pass(
    *_C_LIKE, r"#(?!\[)[^\n]*+", _DOUBLE, _SINGLE, r"use\b", r"require(?:_once)?\b",
    r"include(?:_once)?\b",
)  # fmt: skip
_PHP_USE = re.compile(
    r"use\s{1,99}(?:function\s+|const\s+)?([\\\w][\w\\, \t\r\n]{0,1000}+)"
    r"(?:\{([^{}]{0,3000}+)\})?\s{0,99}[;{]"
)
_PHP_FILE = re.compile(
    r"\w+[\s(]{0,99}(?:(__DIR__|dirname\s*\(\s*__FILE__\s*\))\s*\.\s*|\w+\s*\.\s*)?"
    r"(['\"])([^'\"\n$]{1,500}+)\2(?:\s{0,9}\))?"
)


def _php(text: str) -> list[Reference]:
    found: list[Reference] = []
    for word in _words(_PHP, text, "use", "require", "include"):
        start = word.start()
        if start and (text[start - 1].isalnum() or text[start - 1] in "_$>:\\"):
            continue
        if word[0] != "use":
            match = _PHP_FILE.match(text, start)
            if match:
                target = match[3].lstrip("/") if match[1] else match[3]
                found.append(Reference("import", target, "php-file", "", start, match.end()))
            continue
        match = _PHP_USE.match(text, start) if _starts_line(text, start, "{;") else None
        if match is None:
            continue
        prefix = ""
        items = match[1]
        if match[2] is not None:
            head, separator, _ = match[1].rpartition("\\")
            prefix = head + separator
            items = match[2]
        for item in items.split(","):
            name = re.split(r"\s+as\s+", item.strip())[0].strip()
            name = (prefix + name.removeprefix("function ").removeprefix("const ")).strip("\\ ")
            if re.fullmatch(r"\w+(?:\\\w+)*", name):
                found.append(Reference("import", name, "php", "", start, match.end()))
    return found


_DART = _pass(
    *_C_LIKE, _TRIPLE_DOUBLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE, r"import\b", r"export\b", r"part\b"
)
_DART_IMPORT = re.compile(r"\w+\s{1,99}(?:of\s+)?(['\"])([^'\"\n]{1,500}+)\1[^;'\"]{0,1000}+;?")
_DART_SHOW = re.compile(r"\bshow\s+([\w\s,]+)")


def _dart(text: str) -> list[Reference]:
    found: list[Reference] = []
    for word in _words(_DART, text, "import", "export", "part"):
        start = word.start()
        match = _DART_IMPORT.match(text, start) if _starts_line(text, start, ";") else None
        if match is None or (is_external(match[2]) and not match[2].startswith("package:")):
            continue
        shown = _DART_SHOW.search(match[0])
        names = " ".join(re.findall(r"\w+", shown[1])) if shown else ""
        end = trimmed_end(text, start, match.end())
        found.append(Reference("import", match[2], "dart", names.removesuffix(" hide"), start, end))
    return found


_CSS = _pass(*_C_LIKE, _DOUBLE, _SINGLE, r"@import\b", r"@use\b", r"@forward\b")
_CSS_IMPORT = re.compile(
    r"@\w+\s{0,99}(?:\([\w, ]{1,60}\)\s*)?((?:url\(\s{0,99})?(['\"]?)([^'\"()\s;,]{1,500}+)\2\)?)"
)
_CSS_MORE = re.compile(r"\s{0,99},\s{0,99}(['\"])([^'\"()\s;,]{1,500}+)\1")


def _css(text: str) -> list[Reference]:
    found: list[Reference] = []
    for word in _words(_CSS, text, "@import", "@use", "@forward"):
        start = word.start()
        match: re.Match[str] | None = _CSS_IMPORT.match(text, start)
        target = match[3] if match else ""
        while match:
            target = target.removeprefix("~").partition("?")[0]
            if target and not is_external(target):
                found.append(Reference("import", target, "css", "", start, match.end()))
            match = _CSS_MORE.match(text, match.end())
            target = match[2] if match else ""
    return found


# --- Languages in which an import is a line

_RUBY_REQUIRE = re.compile(
    r"^[ \t]*+(?:(require_relative|require|load)[ \t(]+|autoload[ \t(]+:\w+,[ \t]*)"
    r"(['\"])([^'\"\n#]{1,500}+)\2\)?",
    re.M,
)
_RUBY_COMMENT = re.compile(r"^=(begin|end)\b", re.M)


def _ruby(text: str) -> list[Reference]:
    found: list[Reference] = []
    if "require" not in text and "load" not in text:
        return found
    hidden = []
    opened = -1
    for mark in _RUBY_COMMENT.finditer(text) if "=begin" in text else ():
        if mark[1] == "begin" and opened < 0:
            opened = mark.start()
        elif mark[1] == "end" and opened >= 0:
            hidden.append((opened, mark.end()))
            opened = -1
    for match in _RUBY_REQUIRE.finditer(mask(text, hidden)):
        target = match[3]
        if match[1] == "require_relative" and not target.startswith((".", "/")):
            target = "./" + target
        start = match.end() - len(match[0].lstrip(" \t"))
        found.append(Reference("import", target, "ruby", "", start, match.end()))
    return found


_SHELL_SOURCE = re.compile(
    r"(?:^|[;&|])[ \t]*+(?:(?:then|do|else|if|!)[ \t]+)?((?:source|\.)[ \t]+([^\n;&|#]{1,500}+))",
    re.M,
)


def _shell(text: str) -> list[Reference]:
    found: list[Reference] = []
    for match in _SHELL_SOURCE.finditer(text):
        target = _shell_path(match[2].strip())
        if target:
            end = trimmed_end(text, match.start(1), match.end(1))
            found.append(Reference("import", target, "shell", "", match.start(1), end))
    return found


def _shell_path(argument: str) -> str:
    """Return the constant end of a path such as `"$(dirname "$0")/lib.sh"`; "" without any."""
    dollar = max(argument.rfind("$"), argument.rfind("`"))
    if dollar < 0:
        words = argument.split()
        path = words[0].strip("\"'") if words else ""
    else:
        cut = max(argument.rfind(")"), argument.rfind("}"), dollar)
        slash = argument.find("/", cut)
        path = argument[slash + 1 :].partition(" ")[0].strip("\"'") if slash >= 0 else ""
    return path if re.fullmatch(r"[\w@.+/-]*\w", path) else ""


_LUA = _pass(
    r"--\[\[(?:[^\]]++|\](?!\]))*+(?:\]\])?", r"--[^\n]*+", r"\[\[(?:[^\]]++|\](?!\]))*+(?:\]\])?",
    _DOUBLE, _SINGLE, r"require\b",
)  # fmt: skip
_LUA_REQUIRE = re.compile(r"require[ \t]*\(?[ \t]*(['\"])([\w./@-]{1,300}+)\1[ \t]*\)?")


def _lua(text: str) -> list[Reference]:
    found: list[Reference] = []
    for word in _words(_LUA, text, "require"):
        start = word.start()
        match = _LUA_REQUIRE.match(text, start)
        if match and not (start and (text[start - 1].isalnum() or text[start - 1] in "_.:")):
            end = trimmed_end(text, start, match.end())
            found.append(Reference("import", match[2], "lua", "", start, end))
    return found


# Form and pattern of a line; group 1 is the evidence, group 2 the target.
_LINE_PATTERNS: dict[str, tuple[str, str]] = {
    "tex": (
        "tex",
        (
            r"^[^%\n]{0,200}?(\\(?:input|include|subfile|bibliography|addbibresource)"
            r"\{([^{}\n]{1,300}+)\})"
        ),
    ),
    "protobuf": (
        "include",
        r"^[ \t]*+(import[ \t]+(?:public[ \t]+|weak[ \t]+)?\"([^\"\n]{1,500}+)\";?)",
    ),
    "thrift": ("include", r"^[ \t]*+(include[ \t]+\"([^\"\n]{1,500}+)\")"),
    "solidity": (
        "include",
        r"^[ \t]*+(import[^\"\n;]{0,300}+\"([^\"\n]{1,500}+)\"[^;\n]{0,200}+;?)",
    ),
    "zig": ("include", r"^[^\n/]{0,200}?(@import\([ \t]*\"([^\"\n]{1,300}+)\"[ \t]*\))"),
    "julia": ("include", r"^[ \t]*+(include\([ \t]*\"([^\"\n$]{1,500}+)\"[ \t]*\))"),
    "r": ("include", r"^[^\n#]{0,100}?(\bsource\([ \t]*[\"']([^\"'\n]{1,500}+)[\"'][ \t]*\)?)"),
    "haskell": (
        "haskell",
        r"^(import[ \t]+(?:safe[ \t]+)?(?:qualified[ \t]+)?([A-Z]\w*+(?:\.\w++)*+))",
    ),
    "elm": ("elm", r"^(import[ \t]+([A-Z]\w*+(?:\.\w++)*+))"),
    "perl": ("perl", r"^[ \t]*+((?:use|require)[ \t]+([A-Z]\w*+(?:::\w++)*+))"),
    "makefile": ("include", r"^(-?s?include[ \t]+([\w./-]{1,300}+))[ \t]*\r?$"),
    "cmake": (
        "cmake",
        (
            r"^[ \t]*+((?:include|add_subdirectory)[ \t]*\([ \t]*(?:\$\{[\w]{1,80}\}/)?"
            r"\"?([\w./-]{1,300}+)\"?[ \t]*\)?)"
        ),
    ),
    "nix": ("nix", r"^[^\n#]{0,200}?((?:import[ \t]+|(?<=\s))(\.{1,2}/[\w./+-]{1,300}+))"),
    "terraform": ("terraform", r"^[ \t]*+(source[ \t]*=[ \t]*\"(\.{1,2}/[^\"\n]{0,300}+)\")"),
}
_LINES = {
    language: (form, re.compile(pattern, re.M | re.I if language == "cmake" else re.M))
    for language, (form, pattern) in _LINE_PATTERNS.items()
}


def _line_reader(language: str) -> Callable[[str], list[Reference]]:
    form, pattern = _LINES[language]

    def read(text: str) -> list[Reference]:
        found = []
        for match in pattern.finditer(text):
            for target in match[2].split(",") if language == "tex" else (match[2],):
                if target.strip() and not (form == "include" and is_external(target.strip())):
                    found.append(
                        Reference("import", target.strip(), form, "", match.start(1), match.end(1))
                    )
        return found

    return read


_READERS: dict[str, Callable[[str], list[Reference]]] = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "vue": _component,
    "svelte": _component,
    "go": _go,
    "rust": rust_imports,
    "java": _jvm,
    "kotlin": _jvm,
    "scala": _jvm,
    "groovy": _jvm,
    "c": _c,
    "cpp": _c,
    "objc": _c,
    "csharp": _csharp,
    "ruby": _ruby,
    "php": _php,
    "dart": _dart,
    "css": _css,
    "bash": _shell,
    "fish": _shell,
    "lua": _lua,
    **{language: _line_reader(language) for language in _LINES},
}


def import_references(text: str, language: str) -> list[Reference]:
    """Read the imports of a programming language; [] for any other language."""
    reader = _READERS.get(language)
    return reader(text) if reader is not None else []
