"""What the wheel ships: exactly the tracked files of the six packages, data and templates included."""

import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kb", "ingest", "taxonomy", "recommender", "costmodel", "web")


def tracked():
    done = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from the tracked files alone, as a fresh clone would build it."""
    import shutil
    import sys

    clone = tmp_path_factory.mktemp("clone")
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            target = clone / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(out), str(clone)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_wheel_is_the_tracked_files(wheel):
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == tracked()


def test_wheel_has_the_command(wheel):
    entry = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "kb = kb.cli:main" in wheel.read(entry).decode()


def test_no_foreign_code_or_large_files():
    for name in tracked():
        path = ROOT / name
        assert not name.endswith((".min.js", ".wasm", ".so", ".pkl", ".joblib")), name
        assert path.stat().st_size < 2_000_000, f"{name} is {path.stat().st_size} bytes"
        assert not path.is_symlink(), name
