"""The table of allowed imports in docs/decisions/0001 as a test.

If it fails: move the function to the package that may hold it, or hand it in as a parameter (see how `kb.db.ensure`
takes the builder that lives in `ingest`). Widening the table needs a decision record.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("taxonomy", "costmodel", "kb", "ingest", "recommender", "web")
ALLOWED = {
    "taxonomy": set(),
    "costmodel": set(),
    "kb": {"taxonomy"},
    "ingest": {"taxonomy", "costmodel", "kb"},
    "recommender": {"taxonomy", "costmodel", "kb"},
    "web": {"taxonomy", "costmodel", "kb", "recommender"},
    "kb.cli": {"taxonomy", "costmodel", "kb", "ingest", "recommender", "web"},
}
LEAF_LIBRARIES = {"taxonomy": set(), "costmodel": {"numpy"}}


def layer(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "kb.cli" if parts[:2] == ("kb", "cli") else parts[0]


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Dotted names of everything a module imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_are_allowed(path):
    here = layer(path)
    for name in imported(path):
        top = name.split(".")[0]
        if top not in PACKAGES:
            continue
        if name == "kb.cli" or name.startswith("kb.cli."):
            assert here == "kb.cli", f"{path} imports {name}: nobody but the command line imports kb.cli"
        elif top != here.split(".")[0]:
            assert top in ALLOWED[here], f"{path}: {here} may not import {name}"


@pytest.mark.parametrize("package", sorted(LEAF_LIBRARIES))
def test_leaves_use_the_standard_library(package):
    import sys

    for path in (ROOT / package).rglob("*.py"):
        for name in imported(path):
            top = name.split(".")[0]
            known = top in sys.stdlib_module_names or top == package or top in LEAF_LIBRARIES[package]
            assert known, f"{path} imports {name}: {package} is a leaf"


def test_package_roots_import_nothing():
    for package in PACKAGES:
        assert not imported(ROOT / package / "__init__.py"), (
            f"{package}/__init__.py must stay empty of imports"
        )


def test_scale_factors_are_written_once():
    """1e9, 2**30 and their like belong to costmodel/units.py; elsewhere they are named."""
    for path in (ROOT / "costmodel").glob("*.py"):
        if path.name == "units.py":
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                pair = (getattr(node.left, "value", None), getattr(node.right, "value", None))
                assert pair not in ((2, 30), (2, 20), (2, 40), (10, 9)), (
                    f"{path}:{node.lineno}: use costmodel.units"
                )
