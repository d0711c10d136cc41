"""`benchmarks/quality.py` on collections of a few lines, without a model."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ANIMALS = {
    "zebra.md": "# Zebra\n\nThe striped zebra grazes on the plain; see [lions](cats/lion.md).\n",
    "cats/lion.md": "# Lion\n\nThe lion hunts at night and sleeps all day on the plain.\n",
    "trout.md": "# Trout\n\nThe trout swims in the cold river below the plain.\n",
}
KITCHEN = {
    "bread.md": "# Bread\n\nKnead the dough, let it rise, then bake it in a hot oven.\n",
    "soup.md": "# Soup\n\nBoil the water, add what you have, and wait.\n",
    "tea.md": "# Tea\n\nBoil the water and pour it over the leaves.\n",
}


def add(data: Path, name: str, files: Mapping[str, str], queries: Mapping[str, str]) -> None:
    folder = data / name
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as out:
        for path, text in files.items():
            out.write(json.dumps({"path": path, "text": text}) + "\n")
    lines = (json.dumps({"query": query, "relevant": [path]}) for query, path in queries.items())
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "data"
    add(found, "animals", ANIMALS, {"striped zebra": "zebra.md", "the plain": "trout.md"})
    add(found, "rooms/kitchen", KITCHEN, {"boil water": "tea.md", "hot oven": "bread.md"})
    add(found, "rooms/zoo", ANIMALS, {"hunting lion": "cats/lion.md"})
    return found


@pytest.fixture
def quality(tmp_path: Path, data: Path, ragx_environment: Callable[..., dict[str, str]]) -> Run:
    """Run the script as a process; words alone are searched unless `settings` says otherwise."""

    def run(*args: str, settings: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "settings.toml"
        path.write_text(f'[embeddings]\nprovider = "none"\n{settings}')
        where = ["--work", str(tmp_path / "work"), "--settings", str(path)]
        done = subprocess.run(
            [sys.executable, str(BENCHMARKS / "quality.py"), *args, *where],
            env=ragx_environment({"RAGX_DATA": str(data)}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def module_of(name: str) -> ModuleType:
    """A file beside the script, as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)  # dataclasses look there
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def fetching() -> ModuleType:
    return module_of("fetching")


def cells(text: str, first: str) -> list[str]:
    """The row of a table that starts with a cell, the first such."""
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines())
    return next(row for row in rows if row and row[0] == first)


def test_a_run_is_kept_and_compared(quality: Run, data: Path, tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    first = quality("--json", a, "--compare", "lexical", "graph")
    head = cells(first.stdout, "collection")
    assert head[:6] == ["collection", "files", "queries", "lexical", "rules", "graph"]
    assert cells(first.stdout, "animals")[1:3] == ["3", "2"]
    kitchen, zoo = cells(first.stdout, "rooms/kitchen"), cells(first.stdout, "rooms/zoo")
    mean = cells(first.stdout, "rooms (mean of 2)")
    assert mean[1:3] == ["6", "3"]
    assert float(mean[3]) == pytest.approx((float(kitchen[3]) + float(zoo[3])) / 2, abs=1e-4)
    assert kitchen[-4:][0] == "lexical"
    assert "animals: 3 files indexed" in first.stderr
    assert (tmp_path / "work/rooms/zoo/cats/lion.md").read_text() == ANIMALS["cats/lion.md"]

    # Again, nothing is indexed or asked.
    second = quality("--json", b, "--compare", "lexical", "graph")
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert Path(a).read_text() == Path(b).read_text()
    same = quality("diff", a, b)
    assert cells(same.stdout, "animals")[-4:] == ["+0.0000", "1.0000", "0", "0"]

    # A changed corpus is noticed, and measured alone.
    changed = {path: text for path, text in ANIMALS.items() if path != "cats/lion.md"}
    changed["trout.md"] = "# Trout\n\nNothing is told.\n"
    add(data, "animals", changed, {"striped zebra": "zebra.md", "the plain": "trout.md"})
    third = quality("--json", b)
    assert "animals: 2 files indexed" in third.stderr
    assert "rooms" not in third.stderr
    assert not (tmp_path / "work/animals/cats/lion.md").exists()
    row = cells(quality("diff", a, b).stdout, "animals")
    assert float(row[4]) == pytest.approx(float(row[3]) - float(row[2]), abs=1e-4)
    assert float(row[4]) < 0
    assert row[-2:] == ["0", "1"]


def test_a_sweep_gives_what_runs_give(quality: Run) -> None:
    swept = quality("sweep", "spread.hops=0,1", "rules.path=0", "--only", "animals", "rooms")
    assert "then" in swept.stderr
    assert cells(swept.stdout, "setting") == ["setting", "animals", "rooms (mean of 2)", "mean"]
    row = cells(swept.stdout, "spread.hops=0 rules.path=0")
    settings = "[traversal]\nhops = 0\n[scoring.rules]\npath = 0.0\n"
    plain, changed = quality(), quality(settings=settings)
    for at, name in ((1, "animals"), (2, "rooms (mean of 2)")):
        value, difference, *_ = row[at].split()
        assert value == cells(changed.stdout, name)[5]
        before = float(cells(plain.stdout, name)[5])
        assert float(difference) == pytest.approx(float(value) - before, abs=2e-4)


def test_what_is_no_option() -> None:
    settings_of = module_of("sweeping").settings_of
    for text in ("spread.hop=1", "spread.hops=few", "spread=1", "vector_weight", "method=sum"):
        with pytest.raises(ValueError, match=text.split("=", maxsplit=1)[0]):
            settings_of([text])
    assert settings_of(["vector_weight=auto,0.5", "spread.weights.symbol=0"])[1:] == [
        (("vector_weight", "auto"), ("spread.weights.symbol", "0")),
        (("vector_weight", "0.5"), ("spread.weights.symbol", "0")),
    ]


def test_one_bad_collection_does_not_stop_the_others(quality: Run, data: Path) -> None:
    add(data, "outside", {"a.md": "a", "../b.md": "b"}, {"a": "a.md"})
    add(data, "unknown", {"a.md": "a"}, {"a": "b.md"})
    (data / "nowhere").mkdir()
    (data / "nowhere/queries.jsonl").write_text('{"query": "a", "relevant": ["a.md"]}')
    done = quality("--only", "animals", "outside", "unknown", status=1)
    assert "outside: '../b.md' is no path" in done.stderr
    assert "unknown: 1 judged files are missing: b.md" in done.stderr
    assert "nowhere: left out" in done.stderr
    assert not (data.parent / "work/b.md").exists()
    assert cells(done.stdout, "animals")
    assert "no collection mammals" in quality("--only", "mammals", status=1).stderr


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../../b", "C:/a", "a\\b", ".ragx/a"])
def test_paths_that_lead_elsewhere(fetching: ModuleType, path: str) -> None:
    with pytest.raises(fetching.FetchError):
        fetching._parts(path)


def test_folders_that_are_somebody_elses(fetching: ModuleType, data: Path, tmp_path: Path) -> None:
    mine = tmp_path / "work/animals/mine.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(fetching.FetchError, match="not written by this benchmark"):
        fetching.write_collection(fetching.find_collections(data)[0], tmp_path / "work")
    assert mine.read_text() == "mine"


def test_the_registry_that_npm_would_ask(fetching: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(fetching.FetchError):
        fetching.npm_registry({}, tmp_path)
    (tmp_path / ".npmrc").write_text("# registry=http://one\nregistry = http://two/npm/\n")
    assert fetching.npm_registry({}, tmp_path) == "http://two/npm"
    environment = {"npm_config_registry": "http://three"}
    assert fetching.npm_registry(environment, tmp_path) == "http://three"
