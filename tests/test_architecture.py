"""The rooms of the house: what the architecture page names exists, tests mirror modules, files stay readable."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/warren"
PAGES = [ROOT / "docs/architecture.md", *sorted((ROOT / "docs/decisions").glob("*.md"))]
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 300
MAX_TERMS = 30
ACROSS_ROOMS = {"browser", "dashboard", "deploy", "faults", "integration", "kit", "security"}
"""Folders of tests that show the whole product, not one module."""
BY_SUBJECT = {"test_architecture.py", "test_docs.py", "test_readme.py", "conftest.py", "__init__.py"}

_PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:/|\.(?:py|ts|tsx|md|toml)))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    paths = set(_PATH.findall(page.read_text(encoding="utf-8"))) - {"burrow.toml", "auth.txt"}
    roots = (SOURCE, ROOT, page.parent, ROOT / "dashboard")
    missing = {path for path in paths if not any((root / path).exists() for root in roots) and not _is_data(path)}
    assert not missing


def _is_data(path: str) -> bool:
    """Whether a path is one of the data directory."""
    return path.split("/", maxsplit=1)[0] in {
        "manifests",
        "partitions",
        "groups",
        "heads",
        "layouts",
        "requests",
        "history",
    } and not path.endswith(".py")


def test_tests_mirror_the_modules_they_test() -> None:
    modules = {str(module.relative_to(SOURCE).with_suffix("")).removesuffix("/__init__") for module in MODULES}
    strays = []
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        path = test.relative_to(ROOT / "tests")
        if path.parts[0] in ACROSS_ROOMS or path.name in BY_SUBJECT:
            continue
        # A module with many tests may have several files: test_rules.py, test_rules_of_burrow.py.
        words = path.stem.removeprefix("test_").split("_")
        prefixes = {str(path.parent / "_".join(words[:end])) for end in range(1, len(words) + 1)}
        if not prefixes & modules:
            strays.append(str(path))
    assert not strays


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lines = {str(module.relative_to(ROOT)): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_a_class_name_means_one_thing() -> None:
    names = Counter(
        node.name
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_the_glossary_can_be_learned() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", page, flags=re.MULTILINE)
    assert terms
    assert len(terms) <= MAX_TERMS
    assert len(set(terms)) == len(terms)
