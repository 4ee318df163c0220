"""Schemathesis over the OpenAPI document, all checks, against the running server."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def test_every_answer_keeps_the_contract(server):
    command = shutil.which("schemathesis", path=str(Path(sys.executable).parent)) or shutil.which(
        "schemathesis"
    )
    assert command, "schemathesis is missing: pip install schemathesis"
    found = subprocess.run(
        [
            *(command, "run", f"{server}/api/v1/openapi.json", "--checks", "all", "--no-color"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", "5", "--request-timeout", "60"),
        ],
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert found.returncode == 0, found.stdout[-6000:]
