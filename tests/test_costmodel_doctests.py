"""The examples in the cost model's docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import costmodel

MODULES = sorted(module.name for module in pkgutil.iter_modules(costmodel.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"costmodel.{name}")
    assert doctest.testmod(module).failed == 0
