"""Plans: which techniques go together, which set is best, and what each step adds.

Candidates are small sets of mutually compatible techniques. All of them are priced in one vectorised call; the
score of a plan is the logarithm of its gain minus a fixed price per step, so a step that brings less than
`STEP_PRICE` is never worth its trouble, and the order of evaluation cannot change the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recommender import effects
from recommender.effects import Fields

# ln of the least factor that makes one more thing to switch on worth it.
STEP_PRICE = 0.02
# ln by which a plan is valued less when no single engine ships all its parts: somebody has to port one of them.
MIXED_PRICE = 0.35
MAX_STEPS = 5
MAX_CANDIDATES = 400

QUALITY_STEP = {"yes": 0, "approx": 1, "no": 2}
TRAINING_STEP = {"none": 0, "calibration": 1, "finetune": 2, "pretrain": 3}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A technique as the planner sees it."""

    slug: str
    changes: Fields
    settings: frozenset[str]
    training: str = "none"
    lossless: str = "approx"
    score: float = 0.0  # ln of its gain alone, discount taken off
    discount: float = 0.0  # ln by which it is valued below its gain: no engine ships it, outputs change …
    trust: float = 1.0  # factor on the spread of its gain: below 1 where figures were measured
    engines: frozenset[str] | None = None  # that ship it; None: it does not matter
    excludes: frozenset[str] = field(default_factory=frozenset)  # slugs it may not run with
    requires: frozenset[str] = field(default_factory=frozenset)  # of each, one must be in the plan


def compatible(a: Part, b: Part) -> bool:
    """Whether two techniques may be in one plan."""
    if a.slug == b.slug or b.slug in a.excludes or a.slug in b.excludes:
        return False
    return not effects.collide(a.changes, a.settings, b.changes, b.settings) and not (
        a.settings & b.settings & _EXCLUSIVE
    )


# Two techniques that set one of these describe rival ways of doing the same thing even where the values agree.
_EXCLUSIVE = frozenset({"tokens_per_step", "weight_format", "host_weight_share"})


def shortlist(parts: Sequence[Part], limit: int) -> list[Part]:
    """The parts worth combining, best first: by gain alone, then by name so that ties do not depend on order."""
    return sorted(parts, key=lambda part: (-part.score, part.slug))[:limit]


def candidate_sets(
    parts: Sequence[Part], *, max_steps: int = MAX_STEPS, limit: int = MAX_CANDIDATES
) -> list[tuple[int, ...]]:
    """Every set of mutually compatible parts (indices, ascending), smaller sets first, at most `limit` of them."""
    count = len(parts)
    friends = [{j for j in range(count) if j > i and compatible(parts[i], parts[j])} for i in range(count)]
    layer: list[tuple[tuple[int, ...], set[int]]] = [((i,), friends[i]) for i in range(count)]
    found: list[tuple[int, ...]] = [chosen for chosen, _ in layer]
    for _ in range(1, max_steps):
        grown: list[tuple[tuple[int, ...], set[int]]] = []
        for chosen, open_ in layer:
            grown += [((*chosen, j), open_ & friends[j]) for j in sorted(open_)]
        if not grown:
            break
        # Where the sets are too many, those with the best parts stay; each prefix of a plan stays with it
        # because parts are sorted by gain and the sums are monotone.
        room = limit - len(found)
        if len(grown) > room:
            grown.sort(key=lambda item: (-sum(parts[i].score for i in item[0]), item[0]))
            grown = grown[: max(room, 0)]
        found += [chosen for chosen, _ in grown]
        layer = grown
        if len(found) >= limit:
            break
    return found


def is_complete(parts: Sequence[Part], chosen: Iterable[int]) -> bool:
    """Whether everything that the chosen parts require is in the plan too."""
    slugs = {parts[i].slug for i in chosen}
    return all(not parts[i].requires or parts[i].requires & slugs for i in chosen)


def combined(
    parts: Sequence[Part], chosen: Sequence[int], compose: Callable[[Sequence[str]], Fields]
) -> Fields:
    """The changes of a set of parts; fields set by one part alone are taken over, shared ones are composed."""
    merged: Fields = {}
    for i in chosen:
        changes = parts[i].changes
        for name in merged.keys() & changes.keys():
            if merged[name] is not changes[name]:
                return compose([parts[k].slug for k in chosen])
        merged |= changes
    return merged


def deployment_order(parts: Sequence[Part], chosen: Iterable[int]) -> tuple[int, ...]:
    """Cheapest to undo first: no training before calibration, lossless before lossy, then the larger gain."""
    return tuple(
        sorted(
            chosen,
            key=lambda i: (
                TRAINING_STEP[parts[i].training],
                QUALITY_STEP[parts[i].lossless],
                -parts[i].score,
                parts[i].slug,
            ),
        )
    )


def set_prices(parts: Sequence[Part], sets: Sequence[tuple[int, ...]]) -> NDArray[Any]:
    """What each set costs beside its gain: a price per step and the discounts of its parts."""
    return np.array(
        [
            sum(STEP_PRICE + parts[i].discount for i in chosen)
            + (MIXED_PRICE if common_engines(parts, chosen) == frozenset() else 0.0)
            for chosen in sets
        ]
    )


def common_engines(parts: Sequence[Part], chosen: Iterable[int]) -> frozenset[str] | None:
    """Engines that ship every part that any engine ships; None where no part says."""
    found: frozenset[str] | None = None
    for i in chosen:
        engines = parts[i].engines
        if engines:  # a part that nobody ships has its own discount
            found = engines if found is None else found & engines
    return found


def plan_scores(gain: NDArray[Any], fits: NDArray[Any], prices: NDArray[Any]) -> NDArray[Any]:
    """ln(gain) − price; −∞ where the plan does not fit or its gain is unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(gain) - prices
    return np.where(np.asarray(fits, dtype=bool) & np.isfinite(score), score, -math.inf)


@dataclass(frozen=True)
class Facts:
    """What a search asks of every set, worked out once."""

    training: NDArray[Any]  # the most demanding part's step of TRAINING_STEP
    lossless: NDArray[Any]
    complete: NDArray[Any]


def facts_of(parts: Sequence[Part], sets: Sequence[tuple[int, ...]]) -> Facts:
    """The facts of every set."""
    steps = [TRAINING_STEP[part.training] for part in parts]
    kept = [part.lossless == "yes" for part in parts]
    demanding = any(part.requires for part in parts)
    return Facts(
        training=np.array([max(steps[i] for i in chosen) for chosen in sets]),
        lossless=np.array([all(kept[i] for i in chosen) for chosen in sets]),
        complete=np.array([not demanding or is_complete(parts, chosen) for chosen in sets]),
    )


def best(
    parts: Sequence[Part],
    sets: Sequence[tuple[int, ...]],
    scores: NDArray[Any],
    *,
    training: str = "pretrain",
    lossless_only: bool = False,
    facts: Facts | None = None,
) -> int | None:
    """Index of the best set within a training budget; ties go to the smaller, then the alphabetically first."""
    if not sets:
        return None
    known = facts or facts_of(parts, sets)
    allowed = known.complete & (known.training <= TRAINING_STEP[training]) & np.isfinite(scores)
    if lossless_only:
        allowed &= known.lossless
    if not allowed.any():
        return None
    rounded = np.where(allowed, np.round(scores, 9), -math.inf)
    ties = np.flatnonzero(rounded == rounded.max())
    return min(ties.tolist(), key=lambda i: (len(sets[i]), tuple(sorted(parts[k].slug for k in sets[i]))))


def pareto_front(columns: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Which rows no other row beats: smaller is better in every column; equal rows keep the first.

    >>> import numpy as np
    >>> pareto_front([np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 3.0])]).tolist()
    [True, True, False]
    """
    table = np.stack([np.asarray(column, dtype=float) for column in columns])
    count = table.shape[1]
    # column by column: a third axis of two or four elements would cost numpy more than the comparison
    no_worse = np.ones((count, count), dtype=bool)
    better = np.zeros((count, count), dtype=bool)
    for column in table:
        no_worse &= column[:, None] <= column
        better |= column[:, None] < column
    order = np.arange(count)
    beaten = no_worse & (better | (order[:, None] < order))
    finite = np.isfinite(table).all(axis=0)
    beaten &= finite[:, None]
    return finite & ~beaten.any(axis=0)
