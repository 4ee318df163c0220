"""What a technique does to a Deployment: declared in taxonomy/data, applied, stacked and compared here.

Deployments are handled as dictionaries of *effective* fields (the engine's defaults filled in), so "already in
use" is plain equality, and a thousand candidates become one Deployment whose fields are arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache, reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from costmodel.errors import CostModelError
from costmodel.formats import find_format
from costmodel.numeric import spread_names
from costmodel.specs import Deployment, Engine, Model, Workload
from taxonomy.effects import formula_names, formula_value, knob_of, knob_values
from taxonomy.model import Technique

Fields = dict[str, Any]

# Fields whose techniques exclude one another when they set different values; the other fields are multiplied or
# added, so two techniques may share them.
DRAFTING = frozenset(
    {
        "tokens_per_step",
        "verify_tokens",
        "draft_weight_share",
        "draft_layer_share",
        "draft_passes",
        "draft_overhead_s",
    }
)

# Less is better; used to see that an engine already does at least as much.
_BETTER_IF_SMALLER = frozenset(
    {"kv_waste_share", "weights_kept", "kv_tokens_kept", "kv_read_share", "prompt_kept"}
)
_NOTHING_DONE = dict.fromkeys(_BETTER_IF_SMALLER, 1.0) | {"kv_waste_share": 0.0}
_ORDER = {
    "attention_kernel": ("eager", "flash"),
    "decode_attention_kernel": ("eager", "flash", "split"),
    "weight_kernel": ("naive", "tuned"),
}


@lru_cache(maxsize=1)
def _defaults() -> Fields:
    blank = Deployment()
    return {item.name: getattr(blank, item.name) for item in fields(Deployment)}


def baseline_fields(engine: Engine, given: Mapping[str, Any]) -> Fields:
    """Effective fields of a deployment: dataclass defaults, then what the engine does, then what was asked for."""
    found = dict(_defaults())
    found.update({name: value for name, value in engine.defaults.items() if name in found})
    found.update({name: value for name, value in given.items() if value is not None})
    return found


def formula_workload(workload: Workload) -> SimpleNamespace:
    """The workload as formulas of the catalogue see it (arrays pass through)."""
    context = workload.context_tokens + workload.input_tokens
    return SimpleNamespace(
        batch=workload.batch,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        context_tokens=context + workload.output_tokens / 2,
        cache_hit_rate=workload.cache_hit_rate,
    )


def _least(*values: Any) -> Any:
    return reduce(np.minimum, values) if _is_array(values) else min(values)


def _most(*values: Any) -> Any:
    return reduce(np.maximum, values) if _is_array(values) else max(values)


# Plain numbers stay plain: they go into JSON, and numpy on scalars is slow.
ARRAY_FUNCTIONS: dict[str, Any] = {"min": _least, "max": _most}


def changes_of(
    technique: Technique,
    base: Mapping[str, Any],
    *,
    model: Model,
    workload: SimpleNamespace,
    overrides: Mapping[str, Any] | None = None,
) -> Fields:
    """The fields that the technique gives a new value, starting from `base`. Empty: nothing changes.

    `overrides` replaces knobs by name, for example ``{"acceptance_rate": 0.7}``.
    """
    knobs = knob_values(technique.knobs, overrides) if technique.knobs else {}
    changed: Fields = {}
    names: dict[str, Any] | None = None
    for effect in technique.effects:
        value = effect.value
        if isinstance(value, str) and value[:1] in "k=":
            if value[:1] == "=":
                if names is None:
                    layout = SimpleNamespace(devices=base.get("devices", 1))
                    names = formula_names(
                        model=model, workload=workload, deployment=layout, functions=ARRAY_FUNCTIONS
                    )
                value = formula_value(value, names, knobs)
            else:
                name = knob_of(value)
                value = value if name is None else knobs[name]
        before = changed.get(effect.field, base.get(effect.field))
        changed[effect.field] = _operate(effect.op, before, value)
    kept = {name: value for name, value in changed.items() if not _same(value, base.get(name))}
    return _complete_layout(kept, base)


def _complete_layout(changed: Fields, base: Mapping[str, Any]) -> Fields:
    """A new degree of tensor or pipeline parallelism leaves the rest of the devices to the other one."""
    tensor, pipeline = changed.get("tensor_parallel"), changed.get("pipeline_parallel")
    devices = changed.get("devices", base.get("devices", 1))
    if tensor is not None and pipeline is None:
        changed["pipeline_parallel"] = max(1.0, float(devices) / float(tensor))
    elif pipeline is not None and tensor is None:
        changed["tensor_parallel"] = max(1.0, float(devices) / float(pipeline))
    return changed


def _operate(operation: str, before: Any, value: Any) -> Any:
    if operation == "set" or before is None or isinstance(value, str | bool):
        return value
    if operation == "multiply":
        return before * value
    if operation == "add":
        return before + value
    if operation == "min":
        return _least(before, value)
    return _most(before, value)


def _is_array(values: Iterable[Any]) -> bool:
    return np.ndarray in map(type, values)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is float and type(b) is float:
        return abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1.0)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and bool(np.all(a == b))
    if isinstance(a, float) and isinstance(b, int | float) and not isinstance(b, bool):
        return abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1.0)
    return bool(a == b) or (isinstance(a, str) and isinstance(b, str) and _one_format(a, b))


@lru_cache(maxsize=4096)
def _one_format(a: str, b: str) -> bool:
    """Whether two names mean one number format: gptq and gptq-4bit-g128."""
    try:
        return find_format(a).slug == find_format(b).slug
    except CostModelError:
        return False


def is_in_place(technique: Technique, changes: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether the deployment already does what the technique would: as much or more in every field.

    A technique that changes nothing because its numbers come out neutral here is not in place: somebody, the
    engine or the user, must have set one of its fields.
    """
    if changes:
        return is_covered(changes, base)
    usual = _defaults()
    return any(base.get(effect.field) != usual.get(effect.field) for effect in technique.effects)


def is_covered(changes: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether what is there already does at least as much as `changes` would, in every field."""
    for name, value in changes.items():
        present = base.get(name)
        if name in _ORDER and isinstance(present, str) and present in _ORDER[name] and value in _ORDER[name]:
            if _ORDER[name].index(present) < _ORDER[name].index(value):
                return False
        elif name in _BETTER_IF_SMALLER and present is not None:
            if present == _NOTHING_DONE[name]:
                return False  # nobody does anything about it: the engine only reserves what it needs
            if np.any(np.asarray(present, dtype=float) > np.asarray(value, dtype=float) + 1e-12):
                return False
        elif not _same(value, present):
            return False
    return True


def settings_of(technique: Technique) -> frozenset[str]:
    """Fields the technique sets outright; two techniques that share one are alternatives, not partners."""
    names = {effect.field for effect in technique.effects if effect.op == "set"}
    if names & DRAFTING:
        names.add("tokens_per_step")
    return frozenset(names)


def collide(
    a: Mapping[str, Any], a_settings: frozenset[str], b: Mapping[str, Any], b_settings: frozenset[str]
) -> bool:
    """Whether two techniques set the same field to different values."""
    return any(not _same(a.get(name), b.get(name)) for name in a_settings & b_settings)


def compose(
    techniques: Iterable[Technique],
    base: Mapping[str, Any],
    *,
    model: Model,
    workload: SimpleNamespace,
    overrides: Mapping[str, Any] | None = None,
) -> Fields:
    """The changes of several techniques on top of one another, in the order given."""
    now = dict(base)
    total: Fields = {}
    for technique in techniques:
        changed = changes_of(technique, now, model=model, workload=workload, overrides=overrides)
        now.update(changed)
        total.update(changed)
    return {name: value for name, value in total.items() if not _same(value, base.get(name))}


def deployments(
    base: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]], width: int = 1
) -> Deployment:
    """One Deployment whose changed fields are arrays, one element per candidate (struct of arrays), if there are many.

    With `width` every candidate stands for that many neighbouring elements, over which its arrays spread.
    """
    if len(candidates) == 1 and width == 1:
        return Deployment(**{**base, **candidates[0]})  # plain numbers: numpy is slow on a single one
    changed: dict[str, tuple[list[int], list[Any]]] = {}
    for position, changes in enumerate(candidates):
        for name, value in changes.items():
            known = changed.get(name)
            if known is None:
                known = changed[name] = ([], [])
            known[0].append(position)
            known[1].append(value)
    count = len(candidates)
    numbers: dict[str, tuple[Any, list[int], list[Any]]] = {}
    columns: Fields = {}
    for name, (positions, values) in changed.items():
        usual = base.get(name)
        kinds = {type(usual), *map(type, values)}
        if type(None) in kinds and name in NEUTRAL and len(kinds) > 1:
            usual = NEUTRAL[name] if usual is None else usual
            values = [NEUTRAL[name] if value is None else value for value in values]
            kinds = {type(usual), *map(type, values)}
        if kinds <= _NUMBERS:
            numbers[name] = (usual, positions, values)
        elif np.ndarray in kinds:
            columns[name] = _spread(usual, positions, values, count, width)
        else:
            columns[name] = _column(usual, positions, values, count, width)
    if numbers:
        columns.update(zip(numbers, _table([*numbers.values()], count, width), strict=True))
    return Deployment(**{**base, **columns})


_NUMBERS = frozenset({int, float})
_SWITCHES = frozenset({bool, np.bool_})

# What None looks like as a number, for fields whose arrays cannot hold it: no limit, or (not a number) whatever the
# engine does.
NEUTRAL: Fields = {
    "kv_window_tokens": math.inf,
    "chunk_tokens": math.nan,
    "kv_waste_share": 0.0,
    "expert_parallel": 1.0,
    "tensor_parallel": math.nan,
    "pipeline_parallel": math.nan,
}


def _table(columns: Sequence[tuple[Any, list[int], list[Any]]], count: int, width: int) -> Any:
    """One row of numbers per column of (usual value, positions, values): the usual one but at its positions."""
    usual = np.array([column[0] for column in columns], dtype=np.float64)
    table = usual[:, None].repeat(count, axis=1)
    rows = [row for row, column in enumerate(columns) for _ in column[1]]
    table[rows, [place for column in columns for place in column[1]]] = [
        value for column in columns for value in column[2]
    ]
    return table if width == 1 else table.repeat(width, axis=1)


def _column(usual: Any, positions: list[int], values: list[Any], count: int, width: int) -> Any:
    """Names or switches, None among them, over all candidates."""
    kinds = {type(usual), *map(type, values)}
    if kinds == {type(None)}:
        return None
    if str in kinds:
        names: dict[Any, int] = {usual: 0}
        places = np.zeros(count, dtype=np.intp)
        places[positions] = [names.setdefault(value, len(names)) for value in values]
        return spread_names([*names], places if width == 1 else places.repeat(width))
    column = np.full(count, usual, object if type(None) in kinds else bool if kinds <= _SWITCHES else float)
    column[positions] = values
    return column if width == 1 else column.repeat(width)


def _spread(usual: Any, positions: list[int], values: list[Any], count: int, width: int) -> Any:
    """Numbers some of which differ over the elements of a candidate."""
    column = np.full((count, width), usual, dtype=np.float64)
    for position, value in zip(positions, values, strict=True):
        column[position] = value
    return column.ravel()
