"""How quick the page of `ragx web` is, in a real Chromium.

    python benchmarks/web.py --browser /usr/bin/chromium [--modules N] [--root DIR] [--shots DIR]

Makes a corpus of N Python modules (1,500: 15,000 chunks, some 114,000 edges) whose functions call
each other, indexes it without vectors, serves it, and opens the page. `--root` takes a corpus that
is indexed already. Prints one Markdown table:

- payload: bytes of /api/graph, plain and packed; how long the server took to draw it;
- first paint and first contentful paint, as the browser reports them; map: until it is drawn;
- script per frame: processor time of the main thread in the page's frame callbacks while the map
  was panned and zoomed by mouse, from the browser's own trace; by the clock it has the waiting for
  a core and for the drawing in it. Frames per second are reported, not aimed at: without a graphics
  card the browser draws in software;
- edges drawn at most, and long tasks (over 50 ms) while the map was moved.

Needs playwright (`pip install playwright`) and a Chromium; tests/browser/setup finds one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

SIZE = {"width": 1366, "height": 768}
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
MIDDLE = (880, 330)  # of what the panels leave of the map
TURNS = 14
AREAS = 40
FUNCTIONS = 10
CALLS = 7
_STARTS = "am bel cor dan eri fol gam hul ist jor kal lum mer nor osk pel qua rin sol tur".split()
_ENDS = "ana ber cen dor elt fin gor his ilm jun".split()
WORDS = [start + end for start in _STARTS for end in _ENDS]


def write_corpus(root: Path, n_modules: int, seed: int) -> None:
    """Modules in AREAS directories; nine calls in ten stay within the caller's area."""
    rng = random.Random(seed)
    in_area = [range(area, n_modules, AREAS) for area in range(AREAS)]
    for module in range(n_modules):
        area = module % AREAS
        parts = [f'"""Module {module} of {WORDS[area]}."""\n']
        for number in range(FUNCTIONS):
            one, two, three = rng.choices(WORDS, k=3)
            lines = [
                f"def {_name(module, number)}(value):",
                f'    """Turn {one} and {two} into {three}, {WORDS[area]} style."""',
            ]
            for _ in range(CALLS):
                near = rng.random() < 0.9
                other = rng.choice(in_area[area]) if near else rng.randrange(n_modules)
                called = _name(other, rng.randrange(FUNCTIONS))
                lines.append(f"    value = {called}(value, {rng.choice(WORDS)!r})")
            for step in range(6):
                left, right, name = rng.choices(WORDS, k=3)
                lines.append(f"    {name} = [{left!r}, {right!r}, {step}, value]")
            parts.append("\n".join([*lines, "    return value\n\n"]))
        path = root / WORDS[area] / f"module_{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(parts), encoding="utf-8")


def _name(module: int, number: int) -> str:
    first = WORDS[(module * 7 + number) % len(WORDS)]
    return f"{first}_{WORDS[(module * 13 + number * 5) % len(WORDS)]}_{module}_{number}"


def run(*args: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "ragx", *args], cwd=cwd, check=True)


def serve(root: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "web", "--no-open", "--json", "--port", "0"],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


def payload(url: str) -> dict[str, Any]:
    """Sizes of the map, and how long it took from the start of the server."""
    started = time.monotonic()
    with urllib.request.urlopen(f"{url}api/graph") as reply:
        plain = reply.read()
    elapsed = time.monotonic() - started
    request = urllib.request.Request(f"{url}api/graph", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as reply:
        packed = reply.read()
    assert gzip.decompress(packed) == plain
    meta = json.loads(plain)["meta"]
    return {
        "chunks": meta["nodes"],
        "edges": meta["edges"],
        "topics": meta["communities"],
        "map drawn by the server (s, cold)": round(elapsed, 2),
        "payload (MB)": round(len(plain) / 1e6, 2),
        "payload packed (MB)": round(len(packed) / 1e6, 2),
    }


OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.longTasks.push([one.startTime, one.duration]);
}).observe({type: "longtask", buffered: true});
"""


def look(url: str, program: str, shots: Path | None) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(viewport=SIZE)
        page.add_init_script(OBSERVE)
        page.goto(url)
        page.wait_for_function("window.ragx?.map?.stats?.().frames > 0", timeout=120_000)
        drawn_ms = page.evaluate("performance.now()")
        paints = page.evaluate(
            "Object.fromEntries(performance.getEntriesByType('paint')"
            ".map((one) => [one.name, Math.round(one.startTime)]))"
        )
        page.wait_for_timeout(1000)
        if shots is not None:
            shots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=shots / "far.png")
        browser.start_tracing(page=page, categories=["devtools.timeline"])
        begun = page.evaluate("performance.now()")
        frames = page.evaluate("window.ragx.map.stats().frames")
        taken: list[dict[str, Any]] = []
        edges = 0
        x, y = MIDDLE
        page.mouse.move(x, y)
        for turn in range(TURNS):
            # In to single chunks and out again, always over what is drawn.
            page.mouse.wheel(0, -260 if turn < TURNS - 4 else 800)
            page.wait_for_timeout(150)
            page.mouse.down()
            for step in range(16):
                away = step if step < 8 else 16 - step
                page.mouse.move(x + 14 * away, y + 8 * away)
                page.wait_for_timeout(16)
            page.mouse.up()
            stats = page.evaluate("window.ragx.map.stats()")
            taken.append(stats["scriptMs"])
            edges = max(edges, stats["edgesDrawn"])
            if shots is not None and turn in (3, 6, 9):
                page.screenshot(path=shots / f"zoom-{turn}.png")
        ended = page.evaluate("performance.now()")
        shown = page.evaluate("window.ragx.map.stats().frames") - frames
        long = page.evaluate("window.longTasks")
        trace = json.loads(browser.stop_tracing())
        browser.close()
    callbacks = [one for one in trace["traceEvents"] if one["name"] == "FireAnimationFrame"]
    worked = sorted(one["tdur"] / 1000 for one in callbacks if "tdur" in one)
    moved = [one[1] for one in long if begun <= one[0] <= ended]
    return {
        "first paint (ms)": paints.get("first-paint", "not reported"),
        "first contentful paint (ms)": paints.get("first-contentful-paint", "not reported"),
        "map on the screen (ms)": round(drawn_ms),
        "script per frame, median (ms)": round(worked[len(worked) // 2], 1),
        "script per frame, p95 (ms)": round(worked[int(0.95 * len(worked))], 1),
        "script per frame, worst (ms)": f"{worked[-1]:.1f} (of {len(worked)} frames)",
        "the same by the clock, p95 and worst (ms)": (
            f"{max(one['p95'] for one in taken):.1f}, {max(one['max'] for one in taken):.1f}"
        ),
        "frames per second (software)": round(1000 * shown / (ended - begun), 1),
        "edges drawn at most": edges,
        "long tasks while moving": f"{len(moved)} (worst {max(moved, default=0):.0f} ms)",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browser", required=True)
    parser.add_argument("--modules", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.root or Path(scratch)
        if options.root is None:
            write_corpus(root, options.modules, options.seed)
            (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
            run("index", "--quiet", cwd=root)
        process, url = serve(root)
        try:
            rows = payload(url)
            rows |= look(url, options.browser, options.shots)
        finally:
            process.terminate()
            process.wait()
    print("| measure | value |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value:,} |" if isinstance(value, int) else f"| {name} | {value} |")


if __name__ == "__main__":
    main()
