"""Which formats can be read, by what, and under which identity; nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

__all__ = [
    "BUILT_IN",
    "HINT",
    "PLUGIN_GROUP",
    "Description",
    "Format",
    "Plugin",
    "find",
    "identity",
    "is_installed",
    "plugins",
]

PLUGIN_GROUP = "ragx.extractors"
HINT = "from ragx's checkout, pip install '.[docs]' installs what reads them"


@dataclass(frozen=True, slots=True)
class Format:
    """A format that ragx reads itself.

    Args:
        name: a lower-case word, as `sniff` gives it.
        version: of ragx's own code for it; raised by hand whenever that code gives other blocks
            for the same bytes.
        extensions: lower-case, without a dot, the usual one first.
        module: holds `extract(raw, limits)`; imported in the guarded process only.
        requires: names to import that must be there.
        label: what people call it, singular.
        distributions: packages whose versions are part of its identity.
    """

    name: str
    version: str
    extensions: tuple[str, ...]
    module: str
    requires: tuple[str, ...]
    label: str
    distributions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point that offers an extractor, known without importing it.

    `name` is the entry point's own: the extractor's comes from the guarded process, as a
    `Description`.
    """

    name: str
    value: str
    distribution: str
    distribution_version: str


@dataclass(frozen=True, slots=True)
class Description:
    """What a plug-in says of its extractor, and which entry point it is."""

    name: str
    version: str
    extensions: tuple[str, ...]
    plugin: Plugin

    @property
    def identity(self) -> str:
        """Like `identity` of a built-in format: a document is extracted again once it differs."""
        package = f"{self.plugin.distribution}-{self.plugin.distribution_version}"
        return f"{self.name}@{self.version}/{package}"


def _format(
    name: str,
    extensions: str,
    label: str,
    module: str,
    *,
    requires: tuple[str, ...] = (),
    distributions: tuple[str, ...] | None = None,
    version: str = "1",
) -> Format:
    return Format(
        name,
        version,
        tuple(extensions.split()),
        f"ragx.documents.formats.{module}",
        requires,
        label,
        requires if distributions is None else distributions,
    )


_MARKUP = ("selectolax",)
BUILT_IN: tuple[Format, ...] = (
    _format("pdf", "pdf", "PDF", "pdf.document", requires=("pypdfium2",), version="2"),
    _format("docx", "docx docm dotx", "Word document", "office.docx"),
    _format("pptx", "pptx pptm", "PowerPoint presentation", "office.pptx"),
    _format("xlsx", "xlsx xlsm", "Excel workbook", "office.xlsx"),
    _format("odt", "odt", "OpenDocument text", "office.opendocument"),
    _format("ods", "ods", "OpenDocument spreadsheet", "office.opendocument"),
    _format("odp", "odp", "OpenDocument presentation", "office.opendocument"),
    _format("html", "html htm xhtml", "HTML page", "markup.html", requires=_MARKUP),
    _format("epub", "epub", "EPUB book", "markup.epub", requires=_MARKUP),
    _format("notebook", "ipynb", "Jupyter notebook", "notebook.document"),
    _format("rtf", "rtf", "RTF document", "rtf.document"),
    # A mail can be read without: then pages in it lose their structure.
    _format("mail", "eml", "mail", "mail.document", distributions=_MARKUP),
)
_BY_NAME = {format.name: format for format in BUILT_IN}


def find(name: str) -> Format | None:
    """The built-in format of that name."""
    return _BY_NAME.get(name)


@cache
def is_installed(format: Format) -> bool:
    """Whether the libraries that the format needs are there; imports none of them."""
    return all(find_spec(name) is not None for name in format.requires)


@cache
def identity(format: Format) -> str:
    """Name, version and the libraries' versions: "pdf@1/pypdfium2-5.0.0".

    It is stored with every file that was extracted, so that ragx's own change and a library's
    both extract it anew.
    """
    from importlib.metadata import PackageNotFoundError, version

    parts = [f"{format.name}@{format.version}"]
    for name in format.distributions:
        try:
            parts.append(f"{name}-{version(name)}")
        except PackageNotFoundError:
            parts.append(f"{name}-absent")
    return "/".join(parts)


@cache
def plugins() -> tuple[Plugin, ...]:
    """All entry points of the group, in the order in which they win: by name, then package."""
    from importlib.metadata import entry_points

    found = {
        Plugin(
            point.name,
            point.value,
            point.dist.name if point.dist else "",
            point.dist.version if point.dist else "",
        )
        for point in entry_points(group=PLUGIN_GROUP)
    }
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.distribution, plugin.value)))
