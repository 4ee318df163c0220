"""Random scenarios over all devices, models and loads: no answer may raise, break a bound or forget a technique.

python benchmarks/random_scenarios.py [--count 10000] [--seed 0] [--processes 2]
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# This folder holds costmodel.py, which would hide the package of that name.
sys.path[0] = str(Path(__file__).resolve().parent.parent)


def check(seed: int, count: int) -> dict[str, int]:
    """Faults of `count` scenarios, counted by their text; the first scenario of each is printed."""
    from costmodel.catalogue import all_hardware, all_models
    from recommender import soundness
    from recommender.assess import assess
    from recommender.knowledge import Knowledge
    from recommender.question import Question
    from recommender.service import recommend_with
    from recommender.situation import resolve
    from taxonomy.load import load_relations, load_techniques

    knowledge = Knowledge(
        techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations())
    )
    hardware, models = sorted(all_hardware()), sorted(all_models())
    draw = random.Random(seed)
    faults: collections.Counter[str] = collections.Counter()
    for number in range(count):
        scenario = soundness.random_scenario(draw, hardware, models)
        try:
            question = Question.from_mapping(scenario)
            found = soundness.faults(recommend_with(knowledge, question), knowledge)
            if number % 5 == 0:
                found += soundness.bound_faults(assess(resolve(question, knowledge), knowledge))
        except Exception as error:
            found = [f"raised {type(error).__name__}: {error}"]
        for fault in found:
            if fault not in faults:
                print(f"{fault}\n    {scenario}", flush=True)
            faults[fault] += 1
    return dict(faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    start, share = time.perf_counter(), -(-options.count // options.processes)
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = [options.seed * 1000 + i for i in range(options.processes)]
        found = list(pool.map(check, seeds, [share] * options.processes))
    total = sum(sum(part.values()) for part in found)
    print(f"{share * options.processes} scenarios, {total} faults, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
