"""`python -m recommender.classify_report`: cross-validates the classifier and writes docs/classifier.md.

The database must be there: `kb db init` makes it.

Ten folds over the papers that introduce a catalogued technique. A tested paper's title is all that is given; the
descriptions of its techniques, and other papers on them, are left out of training. Baselines: the commonest
answer, and the nearest known title.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kb.reader import Reader
from recommender.classify import Classifier, level_shares, split, without
from recommender.training_set import CLASS_MINIMUM, Example, TrainingSet, level_of, read_training_set

FOLDS = 10
TOP = 3


@dataclass
class Tally:
    """Answers right out of all, for one method."""

    level: int = 0
    first: int = 0
    top: int = 0
    bottleneck: int = 0
    bottleneck_top: int = 0
    total: int = 0

    def add(
        self,
        example: Example,
        training: TrainingSet,
        level: str,
        classes: Sequence[str],
        bottlenecks: Sequence[str],
    ) -> None:
        right = training.classes(example)
        self.total += 1
        self.level += level in {level_of(path) for path in example.paths}
        self.first += classes[0] in right
        self.top += bool(set(classes[:TOP]).intersection(right))
        self.bottleneck += bottlenecks[0] in example.bottlenecks
        self.bottleneck_top += bool(set(bottlenecks[:2]).intersection(example.bottlenecks))

    def share(self, name: str) -> float:
        return float(getattr(self, name)) / max(self.total, 1)


@dataclass
class Report:
    training: TrainingSet
    papers: int
    classifier: Tally = field(default_factory=Tally)
    majority: Tally = field(default_factory=Tally)
    nearest: Tally = field(default_factory=Tally)
    bare: Tally = field(default_factory=Tally)  # without the hand-written vocabulary
    confidence: list[tuple[float, bool]] = field(default_factory=list)
    misses: Counter[tuple[str, str]] = field(default_factory=Counter)
    per_class: dict[str, list[int]] = field(default_factory=dict)  # class → [papers, in the first three]


def evaluate(reader: Reader) -> Report:
    """Cross-validate on papers; software and web pages only help to train."""
    training = read_training_set(reader)
    papers = [example for example in training.examples if example.is_paper]
    others = [example for example in training.examples if not example.is_paper]
    report = Report(training=training, papers=len(papers))
    for fold in range(FOLDS):
        train, test = split(papers, fold, FOLDS)
        hidden = {slug for example in test for slug in example.techniques}
        train = train + [example for example in others if not hidden.intersection(example.techniques)]
        documents = without(training.documents, hidden)
        classifier = Classifier(training, train, documents).fit()
        bare = Classifier(
            training, train, [d for d in documents if d.techniques or d.bottleneck or not d.path]
        )
        _test_fold(report, classifier, bare.fit(calibrate=False), train, test)
    return report


def _test_fold(
    report: Report,
    classifier: Classifier,
    bare: Classifier,
    train: Sequence[Example],
    test: Sequence[Example],
) -> None:
    training = report.training
    common_classes = _commonest(training.class_of(example.paths[0]) for example in train)
    common_bottlenecks = _commonest(example.bottlenecks[0] for example in train if example.bottlenecks)
    common_level = _commonest(level_of(example.paths[0]) for example in train)[0]
    vectors = classifier.vectors.transform([example.title for example in test])
    likeness = np.asarray((vectors @ classifier.titles.T).todense())
    for i, (example, proposal) in enumerate(
        zip(test, classifier.propose([example.title for example in test]), strict=True)
    ):
        classes = [path for path, _, _ in proposal.classes]
        report.classifier.add(
            example, training, proposal.level, classes, [slug for slug, _ in proposal.bottlenecks]
        )
        report.majority.add(example, training, common_level, common_classes, common_bottlenecks)
        near = [train[j] for j in np.argsort(-likeness[i], kind="stable")]
        report.nearest.add(
            example,
            training,
            level_of(near[0].paths[0]),
            _distinct(training.class_of(other.paths[0]) for other in near),
            _distinct(other.bottlenecks[0] for other in near if other.bottlenecks),
        )
        right = training.classes(example)
        report.confidence.append((proposal.classes[0][2], classes[0] in right))
        seen = report.per_class.setdefault(right[0], [0, 0])
        seen[0] += 1
        seen[1] += bool(set(classes[:TOP]).intersection(right))
        if classes[0] not in right:
            report.misses[(right[0], classes[0])] += 1
    shares = bare.classes.probabilities(bare.vectors.transform([example.title for example in test]))
    for example, row, proposal in zip(test, shares, bare.propose([e.title for e in test]), strict=True):
        levels = level_shares(bare.classes.labels, row)
        order = [bare.classes.labels[j] for j in np.argsort(-row, kind="stable")]
        report.bare.add(
            example,
            training,
            max(levels, key=lambda name: levels[name]),
            order,
            [s for s, _ in proposal.bottlenecks],
        )


def _commonest(values: object) -> list[str]:
    counts: Counter[str] = Counter(values)  # type: ignore[call-overload]
    return [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _distinct(values: object) -> list[str]:
    return list(dict.fromkeys(values))  # type: ignore[call-overload]


def reliability(confidence: Sequence[tuple[float, bool]]) -> list[tuple[str, int, float, float]]:
    """Confidence bands: name, papers, mean confidence, share right."""
    bands = [(0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)]
    rows = []
    for low, high in bands:
        inside = [(c, right) for c, right in confidence if low <= c < high]
        if inside:
            rows.append(
                (
                    f"{low:.1f} to {min(high, 1.0):.1f}",
                    len(inside),
                    sum(c for c, _ in inside) / len(inside),
                    sum(right for _, right in inside) / len(inside),
                )
            )
    return rows


def render(report: Report) -> str:
    """The page as Markdown."""
    methods = [
        ("this classifier", report.classifier),
        ("the same without the vocabulary", report.bare),
        ("nearest known title", report.nearest),
        ("commonest answer", report.majority),
    ]
    columns = ["level", "first", "top", "bottleneck", "bottleneck_top"]
    lines = [
        "# The classifier of new papers",
        "",
        "Generated by `python -m recommender.classify_report`; do not edit.",
        "",
        "`kb ingest` proposes a level, a class, a bottleneck and the nearest known papers for a paper that no",
        "technique claims. It stores none of them: a person decides. How it works stands in the docstring of",
        "`recommender/classify.py`.",
        "",
        "## Cross-validation",
        "",
        f"{FOLDS} folds over the {report.papers} papers that introduce a technique, titles only; the tested papers'",
        "techniques are described nowhere in training. A class is a place in the scheme of Zhou et al. down to its",
        f"third step that has at least {CLASS_MINIMUM} known works, or the parent of such a place:",
        f"{len(report.per_class)} classes. Where a paper has several places, each counts as right.",
        "",
        "| method | level | class, first | class, first three | bottleneck, first | bottleneck, first two |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, tally in methods:
        lines.append(f"| {name} | " + " | ".join(f"{tally.share(column):.3f}" for column in columns) + " |")
    lines += [
        "",
        "The vocabulary (`recommender/data/vocabulary.toml`) was written by people who knew the catalogue, so the first",
        "row flatters the classifier a little on these papers; the second row is free of that.",
        "",
        "## Is the confidence honest?",
        "",
        "Confidence of the first class, and how often it was right:",
        "",
        "| confidence | papers | mean confidence | right |",
        "|---|--:|--:|--:|",
    ]
    lines += [
        f"| {name} | {n} | {mean:.2f} | {right:.2f} |"
        for name, n, mean, right in reliability(report.confidence)
    ]
    lines += ["", "## By class", "", "| class | papers | in the first three |", "|---|--:|--:|"]
    for path, (count, hits) in sorted(report.per_class.items()):
        lines.append(f"| {path} | {count} | {hits / count:.2f} |")
    lines += ["", "## What it confuses most", "", "| is | taken for | papers |", "|---|---|--:|"]
    ranked = sorted(report.misses.items(), key=lambda item: (-item[1], item[0]))[:10]
    lines += [f"| {right} | {wrong} | {count} |" for (right, wrong), count in ranked]
    return "\n".join(lines) + "\n"


def main() -> None:
    from kb.db import open_reader

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("docs/classifier.md"), help="where to write the page"
    )
    parser.add_argument("--db", default=None, help="database URL; default: the packaged one")
    options = parser.parse_args()
    reader = open_reader(options.db)
    try:
        page = render(evaluate(reader))
    finally:
        reader.close()
    options.out.write_text(page, encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
