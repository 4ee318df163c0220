"""Where a paper that the catalogue does not know belongs: level, class, bottleneck and its nearest known papers.

Proposals only; a person decides. Trained from the database at first use, in a second or two; nothing is pickled.

Title and abstract become weighted word and character n-grams (TF-IDF); a linear support vector machine scores the
classes and another the bottlenecks. Scores turn into probabilities by a softmax whose temperature is fitted on
titles held out of training (Guo et al. 2017, arXiv:1706.04599); a level's probability is the sum over its classes.
`docs/classifier.md` has the cross-validated figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kb.reader import Reader
from recommender.knowledge import Knowledge, load_knowledge
from recommender.training_set import Document, Example, TrainingSet, level_of, read_training_set

PENALTY = 0.5  # C of the support vector machines; between 0.1 and 1 the figures hardly change
WORD_WEIGHT = 0.6  # of word n-grams beside character n-grams
TEMPERATURES = tuple(float(value) for value in np.geomspace(1.0, 16.0, 9))
CALIBRATION_FOLDS = 3
NEAREST = 3


@dataclass(frozen=True)
class Proposal:
    """What the title suggests, with the confidence of each suggestion (0 to 1)."""

    title: str
    level: str
    level_confidence: float
    classes: tuple[tuple[str, str, float], ...]  # path, name, confidence; likeliest first
    bottlenecks: tuple[tuple[str, float], ...]
    nearest: tuple[tuple[str, str, float], ...]  # work, title, similarity
    work: str = ""
    note: str = "a proposal from the title; nothing is stored until a person accepts it"

    def as_dict(self) -> dict[str, Any]:
        return {
            "work": self.work or None,
            "title": self.title,
            "level": {"path": self.level, "confidence": round(self.level_confidence, 3)},
            "classes": [{"path": p, "name": n, "confidence": round(c, 3)} for p, n, c in self.classes],
            "bottlenecks": [{"slug": slug, "confidence": round(c, 3)} for slug, c in self.bottlenecks],
            "nearest": [{"id": work, "title": t, "similarity": round(s, 3)} for work, t, s in self.nearest],
            "note": self.note,
        }


@dataclass
class Scorer:
    """One linear model over a shared vocabulary, with calibrated probabilities."""

    labels: list[str]
    model: Any
    temperature: float = 4.0

    def scores(self, vectors: Any) -> np.ndarray:
        return np.asarray(self.model.decision_function(vectors), dtype=float)

    def probabilities(self, vectors: Any) -> np.ndarray:
        return softmax(self.scores(vectors) * self.temperature)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Rows that add up to 1.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def text_of(title: str, abstract: str = "") -> str:
    """The title counts twice beside an abstract, which is ten times as long."""
    return f"{title}. {title}. {abstract}" if abstract else title


@dataclass
class Classifier:
    """Trained on `examples` and `documents` of a training set."""

    training: TrainingSet
    examples: Sequence[Example]
    documents: Sequence[Document]
    vectors: Any = field(init=False)
    classes: Scorer = field(init=False)
    bottlenecks: Scorer = field(init=False)
    titles: Any = field(init=False)

    def fit(self, *, calibrate: bool = True) -> Classifier:
        texts = [text_of(example.title, example.abstract) for example in self.examples]
        texts += [document.text for document in self.documents]
        self.vectors = new_vectors()
        matrix = self.vectors.fit_transform(texts)
        self.titles = self.vectors.transform([example.title for example in self.examples])
        self.classes = fit_labels(matrix, self._labels("class"))
        self.bottlenecks = fit_labels(matrix, self._labels("bottleneck"))
        if calibrate:
            self.classes.temperature, self.bottlenecks.temperature = fit_temperatures(self)
        return self

    def _labels(self, kind: str) -> list[str]:
        if kind == "class":
            found = [self.training.class_of(example.paths[0]) for example in self.examples]
            found += [self.training.class_of(d.path) if d.path else "" for d in self.documents]
        else:
            found = [example.bottlenecks[0] if example.bottlenecks else "" for example in self.examples]
            found += [document.bottleneck for document in self.documents]
        return found

    def propose(self, titles: Sequence[str], abstracts: Sequence[str] = ()) -> list[Proposal]:
        """One proposal per title, in order."""
        if not titles:
            return []
        given = [*abstracts, *([""] * (len(titles) - len(abstracts)))]
        vectors = self.vectors.transform([text_of(t, a) for t, a in zip(titles, given, strict=True)])
        class_shares = self.classes.probabilities(vectors)
        bottleneck_shares = self.bottlenecks.probabilities(vectors)
        likeness = np.asarray((self.vectors.transform(list(titles)) @ self.titles.T).todense())
        norms = self._norms(self.vectors.transform(list(titles)))[:, None] * self._norms(self.titles)[None, :]
        likeness = likeness / np.maximum(norms, 1e-12)
        return [
            self._proposal(title, class_shares[i], bottleneck_shares[i], likeness[i])
            for i, title in enumerate(titles)
        ]

    @staticmethod
    def _norms(matrix: Any) -> np.ndarray:
        return np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())

    def _proposal(
        self, title: str, class_shares: np.ndarray, bottleneck_shares: np.ndarray, likeness: np.ndarray
    ) -> Proposal:
        levels = level_shares(self.classes.labels, class_shares)
        level = max(levels, key=lambda name: levels[name])
        order = np.argsort(-class_shares, kind="stable")[:3]
        hard = np.argsort(-bottleneck_shares, kind="stable")[:2]
        near = np.argsort(-likeness, kind="stable")[:NEAREST]
        names = self.training.class_names
        return Proposal(
            title=title,
            level=level,
            level_confidence=levels[level],
            classes=tuple(
                (path := self.classes.labels[i], names.get(path, path), float(class_shares[i])) for i in order
            ),
            bottlenecks=tuple((self.bottlenecks.labels[i], float(bottleneck_shares[i])) for i in hard),
            nearest=tuple((self.examples[i].work, self.examples[i].title, float(likeness[i])) for i in near),
        )


def level_shares(labels: Sequence[str], shares: np.ndarray) -> dict[str, float]:
    """Probability of each level: the sum over its classes."""
    levels: dict[str, float] = {}
    for label, share in zip(labels, shares, strict=True):
        levels[level_of(label)] = levels.get(level_of(label), 0.0) + float(share)
    return levels


def new_vectors() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w[\w.+-]*\b")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2)
    return FeatureUnion(
        [("words", words), ("characters", characters)],
        transformer_weights={"words": WORD_WEIGHT, "characters": 1.0},
    )


def fit_labels(matrix: Any, labels: Sequence[str]) -> Scorer:
    """A linear support vector machine on the rows that have a label; classes weigh alike however many works."""
    from sklearn.svm import LinearSVC

    rows = [i for i, label in enumerate(labels) if label]
    # A fixed seed: liblinear shuffles coordinates, and the same database must give the same proposals.
    model = LinearSVC(C=PENALTY, class_weight="balanced", random_state=0)
    model.fit(matrix[rows], [labels[i] for i in rows])
    return Scorer(labels=[str(label) for label in model.classes_], model=model)


def without(documents: Sequence[Document], hidden: set[str]) -> list[Document]:
    """Documents that say nothing about the hidden techniques, so that no tested work describes itself."""
    return [document for document in documents if not hidden.intersection(document.techniques)]


def split(examples: Sequence[Example], fold: int, folds: int) -> tuple[list[Example], list[Example]]:
    """Training and test examples of one fold; works of one technique stay together. Deterministic."""
    groups = technique_groups(examples)
    return (
        [example for example, group in zip(examples, groups, strict=True) if group % folds != fold],
        [example for example, group in zip(examples, groups, strict=True) if group % folds == fold],
    )


def technique_groups(examples: Sequence[Example]) -> list[int]:
    """A number per example, equal where two works share a technique; spread evenly over leading classes."""
    first: dict[str, int] = {}
    groups = [0] * len(examples)
    ranked = sorted(range(len(examples)), key=lambda i: (examples[i].paths[0], examples[i].work))
    for number, i in enumerate(ranked):
        shared = [first[slug] for slug in examples[i].techniques if slug in first]
        groups[i] = shared[0] if shared else number
        for slug in examples[i].techniques:
            first.setdefault(slug, groups[i])
    return groups


def fit_temperatures(classifier: Classifier) -> tuple[float, float]:
    """The softmax temperatures with the least log loss on held-out titles."""
    held: dict[str, list[tuple[np.ndarray, list[int]]]] = {"class": [], "bottleneck": []}
    for fold in range(CALIBRATION_FOLDS):
        train, test = split(classifier.examples, fold, CALIBRATION_FOLDS)
        if not train or not test:
            continue
        hidden = {slug for example in test for slug in example.techniques}
        part = Classifier(classifier.training, train, without(classifier.documents, hidden)).fit(
            calibrate=False
        )
        vectors = part.vectors.transform([example.title for example in test])
        for kind, scorer in (("class", part.classes), ("bottleneck", part.bottlenecks)):
            scores = scorer.scores(vectors)
            for row, example in zip(scores, test, strict=True):
                right = classifier.training.classes(example) if kind == "class" else example.bottlenecks
                held[kind].append((row, [scorer.labels.index(r) for r in right if r in scorer.labels]))
    return best_temperature(held["class"]), best_temperature(held["bottleneck"])


def best_temperature(held: Sequence[tuple[np.ndarray, list[int]]]) -> float:
    """Several labels may be right; their probabilities add up."""

    def loss(temperature: float) -> float:
        total = 0.0
        for row, right in held:
            shares = softmax(row[None, :] * temperature)[0]
            total -= float(np.log(max(shares[right].sum(), 1e-6))) if right else 0.0
        return total

    return min(TEMPERATURES, key=loss)


_trained: list[tuple[Knowledge, Classifier]] = []


def classifier_of(reader: Reader) -> Classifier:
    """The classifier of the reader's catalogue, trained once per process and state of the database."""
    knowledge = load_knowledge(reader)
    for known, classifier in _trained:
        if known is knowledge:
            return classifier
    training = read_training_set(reader)
    classifier = Classifier(training, training.examples, training.documents).fit()
    _trained[:] = [(knowledge, classifier), *_trained[:1]]
    return classifier


def propose(reader: Reader, titles: Sequence[str], abstracts: Sequence[str] = ()) -> list[Proposal]:
    """Proposed level, class and bottleneck of papers by title, and by abstract where there is one."""
    return classifier_of(reader).propose(titles, abstracts)


def propose_for_works(reader: Reader, works: Sequence[int]) -> list[Mapping[str, Any]]:
    """The same for works whose role nobody has decided yet; papers only."""
    rows = [
        row
        for work in works
        for row in reader.rows(
            "SELECT slug, title, abstract FROM work WHERE id = :work AND kind = 'paper' AND title <> '' AND role = '' AND NOT EXISTS"
            " (SELECT 1 FROM techniquework WHERE techniquework.work_id = work.id)",
            {"work": work},
        )
    ]
    if not rows or reader.one("SELECT 1 AS found FROM technique LIMIT 1") is None:
        return []  # nothing to classify, or (an empty database) nothing to learn from
    proposals = propose(reader, [row["title"] for row in rows], [row["abstract"] or "" for row in rows])
    return [
        {**proposal.as_dict(), "work": row["slug"]} for proposal, row in zip(proposals, rows, strict=True)
    ]
