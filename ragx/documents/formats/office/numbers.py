"""Values of spreadsheet cells as they are displayed: dates in ISO form, figures without noise."""

from __future__ import annotations

import datetime
import math
import re
from functools import cache

__all__ = ["Form", "displayed", "form_of"]

# Numbers of formats that workbooks use without defining them.
_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 45: "mm:ss",
    46: "[h]:mm:ss", 47: "mm:ss.0",
    **dict.fromkeys(range(27, 37), "yyyy-mm-dd"), **dict.fromkeys(range(50, 59), "yyyy-mm-dd"),
}  # fmt: skip
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]', re.I)
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.I)
_PLAIN = re.compile(r"[#0?,]*(?:\.([0#?]+))?")
_EPOCH = datetime.datetime(1899, 12, 30)
_EPOCH_1904 = datetime.datetime(1904, 1, 1)
_MAX_DECIMALS = 15
_MAX_CODE = 255  # as many characters as Excel takes


class Form:
    """What a number format makes of a number.

    Args:
        kind: "general", "figure", "percent", "date", "time", "moment" or "span".
        decimals: of figures and percentages.
        width: digits before the point, zeros in front included.
    """

    __slots__ = ("decimals", "kind", "width")

    def __init__(self, kind: str, decimals: int = 0, width: int = 1) -> None:
        self.kind = kind
        self.decimals = decimals
        self.width = width


def form_of(number: int, code: str | None) -> Form:
    """The form that a format number stands for; `code` where the workbook defines it."""
    return _form(_BUILT_IN.get(number, "General") if code is None else code)


@cache
def _form(code: str) -> Form:
    bare = _LITERAL.sub("", code[:_MAX_CODE].split(";", 1)[0]).strip()
    if _ELAPSED.search(bare):
        return Form("span")
    letters = set(re.sub(r"(?i)am/pm|a/p|general", "", bare).lower())
    if letters & set("ydhs") or ("m" in letters and not letters & set("0#?")):
        is_date = bool(letters & set("yd")) or not letters & set("hs")
        is_time = bool(letters & set("hs"))
        return Form("moment" if is_date and is_time else "date" if is_date else "time")
    if "%" in bare:
        match = re.search(r"\.([0#?]+)", bare)
        return Form("percent", min(len(match[1]), _MAX_DECIMALS) if match else 0)
    match = _PLAIN.fullmatch(bare.replace(" ", ""))
    if not bare or match is None or "0" not in bare:
        return Form("general")
    decimals = min(len(match[1] or ""), _MAX_DECIMALS)
    whole = bare.split(".", 1)[0]
    width = whole.count("0") if "#" not in whole and "," not in whole else 1
    return Form("figure", decimals, max(1, min(width, 20)))


def displayed(text: str, form: Form, *, since_1904: bool = False) -> str:
    """A number as written in the file, the way the format shows it; other text as it is."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    if form.kind == "general":
        return _general(text, number)
    if form.kind == "figure":
        return _figure(number, form)
    if form.kind == "percent":
        return (
            f"{number * 100:.{form.decimals}f}%" if abs(number) < 1e15 else _general(text, number)
        )
    return _calendar(number, form.kind, since_1904) or _general(text, number)


def _general(text: str, number: float) -> str:
    # Whole numbers are kept as written: account numbers have more digits than a float holds.
    if text.lstrip("-").isdecimal():
        return text
    if 1e10 <= abs(number) < 1e15 or (number == int(number) and abs(number) < 1e15):
        return str(round(number))
    return f"{number:.10g}"  # as many digits as Excel shows


def _figure(number: float, form: Form) -> str:
    if abs(number) >= 1e15:
        return f"{number:.15g}"
    shown = f"{abs(number):.{form.decimals}f}"
    whole, _, rest = shown.partition(".")
    sign = "-" if number < 0 and shown.strip("0.") else ""
    return f"{sign}{whole.zfill(form.width)}{'.' if rest else ''}{rest}"


def _calendar(days: float, kind: str, since_1904: bool) -> str:
    """A day number as date, time of day or span; "" where there is no such day."""
    seconds = round(days * 86400)
    if kind == "span" or (kind == "time" and days >= 1):
        minutes, second = divmod(abs(seconds), 60)
        return f"{'-' if seconds < 0 else ''}{minutes // 60}:{minutes % 60:02d}:{second:02d}"
    # The 1900 calendar has a 29th of February that never was.
    shift = 1 if not since_1904 and 0 < days < 60 else 0
    try:
        moment = (_EPOCH_1904 if since_1904 else _EPOCH) + datetime.timedelta(
            days=shift, seconds=seconds
        )
    except OverflowError:
        return ""
    if seconds < 0:
        return ""
    time = moment.strftime("%H:%M:%S").removesuffix(":00")
    if kind == "time":
        return time
    if kind == "date" or moment.time() == datetime.time():
        return moment.date().isoformat()
    return f"{moment.date().isoformat()} {time}"
