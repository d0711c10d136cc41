"""The page in a real Chromium, over a real server and a real index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

REPOSITORY = Path(__file__).resolve().parents[2]
# The sandbox needs rights that containers lack; WebGL is drawn in software where there is no card.
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
SIZE = {"width": 1366, "height": 768}
PATIENCE_MS = 60_000


@dataclass
class Site:
    """A corpus and the server that shows it."""

    root: Path
    url: str
    process: subprocess.Popen[str]
    run: Callable[..., subprocess.CompletedProcess[str]]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("RAGX_TEST_BROWSER")
    if not program:
        pytest.skip("set RAGX_TEST_BROWSER to a Chromium: make test-browser does")
    api = pytest.importorskip("playwright.sync_api", reason="make test-browser installs playwright")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def run_ragx(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`run_ragx(*args, cwd=...)` runs the real command line with an empty home."""
    environment = settled(tmp_path_factory.mktemp("home"))

    def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ragx", *args],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )

    return run


def settled(home: Path) -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "RAGX_", "HF_")) and not name.lower().endswith("_proxy")
    }
    return environment | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONPATH": str(REPOSITORY),
    }


@pytest.fixture(scope="session")
def serve(
    tmp_path_factory: pytest.TempPathFactory, run_ragx: Callable[..., Any]
) -> Iterator[Callable[..., Site]]:
    """`serve(files, provider="none", settings="", port=0)` indexes a corpus and serves it."""
    running: list[Site] = []
    home = tmp_path_factory.mktemp("home")

    def start(
        files: Mapping[str, str],
        *,
        provider: str = "none",
        settings: str = "",
        port: int = 0,
        root: Path | None = None,
    ) -> Site:
        if root is None:
            root = tmp_path_factory.mktemp("site")
            (root / "ragx.toml").write_text(f'[embeddings]\nprovider = "{provider}"\n{settings}')
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            run_ragx("index", "--quiet", cwd=root)
        process = subprocess.Popen(
            [sys.executable, "-m", "ragx", "web", "--no-open", "--json", "--port", str(port)],
            cwd=root,
            env=settled(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        running.append(Site(root, json.loads(process.stdout.readline())["url"], process, run_ragx))
        return running[-1]

    yield start
    for site in running:
        if site.process.poll() is None:
            site.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport=SIZE, reduced_motion="reduce", color_scheme="light")
    found.set_default_timeout(PATIENCE_MS)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; whatever the page complains of, or asks of another host, fails the test."""
    found = context.new_page()
    complaints: list[str] = []
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    found.on(
        "request",
        lambda request: (
            complaints.append(request.url)
            if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:"))
            else None
        ),
    )
    found.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    yield found
    assert complaints == []
