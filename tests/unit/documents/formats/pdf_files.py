"""A writer of small PDFs for tests: pages of text at given places, with what stands around them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Pdf", "line", "lines", "rc4"]

_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_FONTS = {"R": "Helvetica", "B": "Helvetica-Bold", "M": "Courier", "T": "Times-Roman"}
_PERMISSIONS = -44


def line(x: float, y: float, text: str, size: float = 10, font: str = "R") -> str:
    """Content that shows a line of text with its baseline at (x, y)."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET"


def lines(x: float, y: float, texts: Iterable[str], size: float = 10, font: str = "R") -> str:
    """Lines one below the other, 1.2 times their size apart."""
    return "\n".join(line(x, y - 1.2 * size * i, text, size, font) for i, text in enumerate(texts))


@dataclass
class Pdf:
    """One document: `pages` hold content streams; `links` go by page number from 0."""

    pages: Sequence[str | bytes] = ()
    info: dict[str, str] = field(default_factory=dict)
    outline: Sequence[tuple[int, str, int]] = ()
    links: dict[int, list[tuple[tuple[float, float, float, float], str]]] = field(
        default_factory=dict
    )
    labels: str = ""
    extra_fonts: dict[str, str] = field(default_factory=dict)
    extra_objects: Sequence[str] = ()
    page_entries: str = ""
    encrypted: str = ""  # "", "open" (empty user password) or "closed"

    def build(self) -> bytes:
        """The file."""
        self._objects: list[bytes] = [b"", b"", b""]  # catalog, page tree, resources
        extras = {}
        for i, text in enumerate(self.extra_objects):
            extras[f"@{i}"] = self._add(text.encode("latin-1"))
        page_numbers = [self._page(i, content) for i, content in enumerate(self.pages)]
        kids = " ".join(f"{n} 0 R" for n in page_numbers)
        self._objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(page_numbers)} >>".encode()
        fonts = [
            f"/{key} << /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
            for key, name in _FONTS.items()
        ] + [f"/{key} {value}" for key, value in self.extra_fonts.items()]
        resources = f"<< /Font << {' '.join(fonts)} >> /XObject << /Im 4 0 R >> >>"
        for key, number in extras.items():
            resources = resources.replace(key, f"{number} 0 R")
        self._objects[2] = resources.encode()
        catalog = "<< /Type /Catalog /Pages 2 0 R"
        if self.outline:
            catalog += f" /Outlines {self._outlines(page_numbers)} 0 R"
        if self.labels:
            catalog += f" /PageLabels << /Nums [{self.labels}] >>"
        self._objects[0] = f"{catalog} >>".encode()
        return self._file()

    def _add(self, body: bytes) -> int:
        self._objects.append(body)
        return len(self._objects)

    def _page(self, index: int, content: str | bytes) -> int:
        data = content if isinstance(content, bytes) else content.encode("cp1252")
        if index == 0 and not self.extra_objects:
            # Object 4, which the resources name: an image of one grey pixel.
            self._add(
                b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8"
                b" /ColorSpace /DeviceGray /Length 1 >>\nstream\n\x7f\nendstream"
            )
        packed = zlib.compress(data)
        head = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode()
        stream = self._add(head + packed + b"\nendstream")
        annotations = " ".join(
            f"<< /Type /Annot /Subtype /Link /Rect [{' '.join(map(str, box))}] /A {action} >>"
            for box, action in self.links.get(index, ())
        )
        return self._add(
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources 3 0 R"
                f" {self.page_entries} /Contents {stream} 0 R /Annots [{annotations}] >>"
            ).encode()
        )

    def _outlines(self, pages: Sequence[int]) -> int:
        root = self._add(b"")
        numbers = [self._add(b"") for _ in self.outline]
        parents = [root]
        last: dict[int, int] = {}
        links: dict[int, dict[str, int]] = {n: {} for n in [root, *numbers]}
        for number, (level, _, _) in zip(numbers, self.outline, strict=True):
            parent = parents[level - 1]
            parents[level:] = [number]
            if parent in last:
                links[last[parent]]["Next"] = number
                links[number]["Prev"] = last[parent]
            else:
                links[parent]["First"] = number
            links[parent]["Last"] = last[parent] = number
            links[number]["Parent"] = parent
        for number, entry in zip([root, *numbers], [None, *self.outline], strict=True):
            text = " ".join(f"/{key} {value} 0 R" for key, value in links[number].items())
            if entry:
                text += f" /Title <{_text(entry[1])}> /Dest [{pages[entry[2]]} 0 R /XYZ 0 800 0]"
            self._objects[number - 1] = f"<< {text} >>".encode()
        return root

    def _file(self) -> bytes:
        trailer = ""
        if self.info:
            entries = " ".join(f"/{key} <{_text(value)}>" for key, value in self.info.items())
            trailer += f" /Info {self._add(f'<< {entries} >>'.encode())} 0 R"
        if self.encrypted:
            trailer += f" /Encrypt {self._encrypt()} 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
        out, offsets = b"%PDF-1.5\n", []
        for number, body in enumerate(self._objects, 1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
        xref = len(out)
        out += f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n".encode()
        out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
        trailer = f"<< /Size {len(offsets) + 1} /Root 1 0 R{trailer} >>"
        return out + f"trailer\n{trailer}\nstartxref\n{xref}\n%%EOF\n".encode()

    def _encrypt(self) -> int:
        """Encrypt all streams with 40 bits, as the first version of the standard handler does."""
        owner = bytes(range(32))
        secret = _PAD + owner + (_PERMISSIONS & 0xFFFFFFFF).to_bytes(4, "little") + bytes(16)
        key = hashlib.md5(secret).digest()[:5]
        user = rc4(key, _PAD) if self.encrypted == "open" else bytes(32)
        for number, body in enumerate(self._objects, 1):
            head, begin, rest = body.partition(b"stream\n")
            if begin:
                data = rest.removesuffix(b"\nendstream")
                salted = key + number.to_bytes(3, "little") + bytes(2)
                cipher = rc4(hashlib.md5(salted).digest()[:10], data)
                self._objects[number - 1] = head + begin + cipher + b"\nendstream"
        return self._add(
            f"<< /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{user.hex()}>"
            f" /P {_PERMISSIONS} >>".encode()
        )


def _text(text: str) -> str:
    return ("\ufeff" + text).encode("utf-16-be").hex()


def rc4(key: bytes, data: bytes) -> bytes:
    """The stream cipher of old PDFs."""
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
