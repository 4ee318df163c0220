"""What the value of an Effect means: a constant, a knob, or a short formula of knobs, model and workload.

    value = "w4a16-awq-g128"                    a constant (text, number or boolean)
    value = "knob:kv_kept"                      the knob's value
    value = "= kv_groups / model.heads"         a formula

Formulas know `+ - * / **`, comparison-free arithmetic only, the functions of FUNCTIONS, the technique's own knobs
by name, and the names of VARIABLES. They are compiled once and evaluated without builtins, so a data file cannot
run code. Arguments may be arrays when the caller passes array-aware `min` and `max`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

from taxonomy.errors import DataError
from taxonomy.model import Effect, Knob

VARIABLES: dict[str, tuple[str, ...]] = {
    "model": (
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "intermediate",
        "vocab",
        "n_experts",
        "active_experts",
        "total_params",
        "active_params",
    ),
    # context_tokens: mean number of tokens in the cache while decoding (prompt + half of the output)
    "workload": ("batch", "input_tokens", "output_tokens", "context_tokens", "cache_hit_rate"),
    "deployment": ("devices",),
}


def accepted(rate: Any, drafted: Any) -> Any:
    """Mean tokens gained per verification when each drafted token is accepted with probability `rate`.

    (1 - rate^(drafted + 1)) / (1 - rate), the bonus token included (Leviathan et al. 2023, equation 1).

    >>> accepted(0.5, 2), accepted(1.0, 4)
    (1.75, 5.0)
    """
    sure = rate >= 1.0  # one for each element of an array; there the formula is 0 / 0
    safe = rate * (1 - sure)
    return sure * (drafted + 1) + (1 - sure) * (1 - safe ** (drafted + 1)) / (1 - safe)


FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "accepted": accepted}

_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Load,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.Pow,
    ast.USub,
)


def is_formula(value: object) -> bool:
    return isinstance(value, str) and value.startswith("=")


def knob_of(value: object) -> str | None:
    """The knob that `knob:NAME` names, else None."""
    return value[5:] if isinstance(value, str) and value.startswith("knob:") else None


def unknown_names(value: object, knobs: Iterable[str]) -> list[str]:
    """What a value refers to and nobody defines; empty for a sound value. Raises DataError on bad syntax."""
    known = set(knobs)
    name = knob_of(value)
    if name is not None:
        return [] if name in known else [name]
    if not is_formula(value):
        return []
    missing = []
    tree = _parse(str(value))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            group = node.value.id if isinstance(node.value, ast.Name) else "?"
            if node.attr not in VARIABLES.get(group, ()):
                missing.append(f"{group}.{node.attr}")
        elif isinstance(node, ast.Name) and id(node) not in inner:
            pool = FUNCTIONS if id(node) in called else known
            if node.id not in pool:
                missing.append(node.id)
    return missing


def _parse(formula: str) -> ast.Expression:
    try:
        tree = ast.parse(formula[1:].strip(), mode="eval")
    except SyntaxError as fault:
        raise DataError(f"formula '{formula}' is not arithmetic: {fault.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise DataError(
                f"formula '{formula}' uses {type(node).__name__}; allowed are + - * / ** and "
                + ", ".join(sorted(FUNCTIONS))
            )
    return tree


@lru_cache(maxsize=1024)
def _compiled(formula: str) -> CodeType:
    return compile(_parse(formula), formula, "eval")


def knob_values(knobs: Iterable[Knob], overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every knob's default, with the caller's values in place of those that it names."""
    values: dict[str, Any] = {knob.name: knob.default for knob in knobs}
    for name, value in (overrides or {}).items():
        if name in values and value is not None:
            values[name] = value
    return values


def effect_value(
    effect: Effect,
    knobs: Mapping[str, Any],
    *,
    model: Any = None,
    workload: Any = None,
    deployment: Any = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Any:
    """The value that `effect` gives its field. `model`, `workload` … need the attributes of VARIABLES."""
    name = knob_of(effect.value)
    if name is not None:
        return knobs[name]
    if not is_formula(effect.value):
        return effect.value
    return formula_value(
        str(effect.value),
        formula_names(model=model, workload=workload, deployment=deployment, functions=functions),
        knobs,
    )


def formula_names(
    *,
    model: Any = None,
    workload: Any = None,
    deployment: Any = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> dict[str, Any]:
    """What a formula may name beside the knobs of its technique; the same for all formulas."""
    names: dict[str, Any] = {"__builtins__": {}, **FUNCTIONS, **(functions or {})}
    for group, given in (("model", model), ("workload", workload), ("deployment", deployment)):
        names[group] = given if given is not None else SimpleNamespace()
    return names


def formula_value(formula: str, names: dict[str, Any], knobs: Mapping[str, Any]) -> Any:
    """The value of a formula of the catalogue, with its leading `=`."""
    return eval(_compiled(formula), names, knobs)
