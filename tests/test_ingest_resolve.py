"""Identity: which records are one work. Kinds of public bug reports, near misses, and laws."""

import itertools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlmodel import Session, SQLModel

import kb.models  # noqa: F401  (registers the tables)
from ingest.keys import keys_of, signature
from ingest.literature import SourceInfo, ingest_records
from ingest.references import Reference
from ingest.resolve import Node, partition
from kb.db import make_engine

DOE = ({"family": "Doe", "given": "J."}, {"family": "Roe", "given": "R."}, {"family": "Poe", "given": "E."})


def ref(title="", authors=DOE, year=2023, **fields):
    return Reference(title=title, authors=tuple(authors), year=year, **fields)


def groups(references):
    nodes = [
        Node(signature(one.as_json(), 1) + str(number), keys_of(one), one.title)
        for number, one in enumerate(references)
    ]
    return partition(nodes)


def united(*references):
    return len(groups(references)) == 1


TITLE = "A study of decoding large language models quickly"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The same DOI in another case, and an arXiv DOI beside the bare id.
        (ref("", doi="10.1109/SC41404.2022.00051"), ref(TITLE, doi="10.1109/sc41404.2022.00051")),
        (ref("", (), arxiv_id="1707.08052"), ref(TITLE, arxiv_id="1707.08052")),
        # A preprint and its published version share only the title.
        (ref(TITLE, arxiv_id="2301.00001"), ref(TITLE, doi="10.1145/1", year=2024, venue="Proc.")),
        # Entry type, braces, case, hyphens and blanks do not matter.
        (ref("{Flash}-decoding for long context"), ref("Flashdecoding for Long Context", kind="paper", venue="X")),
        (ref("Decay of Ca 38 : a long measurement"), ref("Decay of Ca<sup>38</sup>: a long measurement")),
        # A title that changed between versions, with the identifier to prove it.
        (ref("On-policy distillation of models", arxiv_id="2306.08543"), ref("MiniLLM: distillation", arxiv_id="2306.08543")),
        # Particles and accents in the first author's name.
        (ref(TITLE, [{"family": "Del Corro"}, {"family": "Roe"}]), ref(TITLE, [{"family": "Corro"}, {"family": "Roe"}])),
        (ref(TITLE, [{"family": "Kurtić"}]), ref(TITLE, [{"family": "Kurtic"}])),
        # A mangled corporate author before the same people.
        (ref(TITLE, [{"family": "Workshop"}, *DOE], et_al=True), ref(TITLE, DOE, et_al=True)),
        # Software by its address, whoever writes it how.
        (
            ref("", [{"family": "NVIDIA"}], 2022, url="https://github.com/NVIDIA/FasterTransformer", kind="software"),
            ref("Fastertransformer: about", [{"family": "NVIDIA"}], 2017, url="http://github.com/nvidia/fastertransformer/", kind="software"),
        ),
        (ref("", (), None, url="https://openreview.net/forum?id=vX"), ref(TITLE, url="https://openreview.net/pdf?id=vX")),
    ],
)  # fmt: skip
def test_one_work(one, other):
    assert united(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ref("ZeroQuant: efficient quantization"), ref("ZeroQuant-V2: efficient quantization")),
        (ref("FlashAttention: fast attention"), ref("FlashAttention-2: fast attention")),
        (ref("Sarathi: chunked prefills"), ref("Sarathi-Serve: chunked prefills")),
        (ref("Textbooks are all you need"), ref("Textbooks are all you need II: phi-1.5 technical report")),
        (ref("Attention is all you need"), ref("Copy is all you need")),
        # Editions, in the title and in their own field.
        (ref("Computer architecture, 2nd ed"), ref("Computer architecture, 3rd ed")),
        (ref("Computer architecture: an approach", edition="2nd"), ref("Computer architecture: an approach", edition="3rd")),
        (ref("Computer architecture: an approach", year=1990), ref("Computer architecture: an approach", year=2011)),
        # Equal titles, conflicting identifiers.
        (ref(TITLE, arxiv_id="2301.00001"), ref(TITLE, arxiv_id="2302.00002")),
        (ref(TITLE, doi="10.1000/a"), ref(TITLE, doi="10.1000/b")),
        # Namesakes: the same title by other people, or a short one without proof.
        (ref(TITLE, [{"family": "Alpha"}, {"family": "Beta"}]), ref(TITLE, [{"family": "Gamma"}, {"family": "Delta"}])),
        (ref("Model compression", [{"family": "Bucila"}], 2006), ref("Model compression", [{"family": "Li"}], 2006)),
        # A blog post is not the paper; a post that links a repository is not the software.
        (ref(TITLE, url="https://example.org/blog/post", kind="website"), ref(TITLE, arxiv_id="2301.00001")),
        (
            ref("Optimizing inference, now public", [{"family": "Vaidya"}], url="https://github.com/N/T", kind="software"),
            ref("", [{"family": "NVIDIA"}], url="https://github.com/N/T", kind="software"),
        ),
        # Two title-less pages of one organisation and year.
        (
            ref("", [{"family": "AWS"}], url="https://example.org/a", kind="website"),
            ref("", [{"family": "AWS"}], url="https://example.org/b", kind="website"),
        ),
        # A wrong identifier in a list: neither title nor authors agree.
        (
            ref("A study of decoding", [{"family": "Doe"}], arxiv_id="2301.00001"),
            ref("Whales of the northern sea", [{"family": "Ahab"}], arxiv_id="2301.00001"),
        ),
    ],
)  # fmt: skip
def test_two_works(one, other):
    assert not united(one, other)


def test_a_title_never_joins_two_identifiers_through_a_third_record():
    """The bare record could belong to either; the two papers must not meet in it."""
    a, b, bare = ref(TITLE, arxiv_id="2301.00001"), ref(TITLE, arxiv_id="2302.00002"), ref(TITLE, venue="X")
    for order in itertools.permutations([a, b, bare]):
        found = groups(order)
        where = {order[index].arxiv_id: number for number, group in enumerate(found) for index in group}
        assert where["2301.00001"] != where["2302.00002"]


def test_of_two_namesakes_the_better_match_is_chosen():
    """A reference of 2017 by the whole list goes to the paper of 2017, not to the letter of 2018."""
    alpha = {"family": "Alpha"}
    paper = ref(
        "Twin titles are a nuisance", [alpha, {"family": "Beta"}, {"family": "Gamma"}], 2017, doi="10.1000/p"
    )
    letter = ref(
        "Twin titles are a nuisance", [alpha, {"family": "Delta"}, {"family": "Zeta"}], 2018, doi="10.1000/l"
    )
    cited = ref("Twin titles are a nuisance", [alpha, {"family": "Beta"}, {"family": "Gamma"}], 2017)
    for order in itertools.permutations([paper, letter, cited]):
        found = groups(order)
        assert sorted(len(group) for group in found) == [1, 2]
        joined = next(group for group in found if len(group) == 2)
        assert letter not in [order[index] for index in joined]


def test_a_persons_word_stands_above_rules():
    nodes = [
        Node("a", keys_of(ref("One title here", arxiv_id="2301.00001")), "One title here"),
        Node("b", keys_of(ref("Quite another name", arxiv_id="2302.00002")), "Quite another name"),
        Node("c", keys_of(ref("One title here", arxiv_id="2301.00001", venue="X")), "One title here"),
    ]
    assert partition(nodes, same=[(0, 1)]) == [[0, 1, 2]]
    apart = partition(nodes, different=[(0, 2)])
    assert all(not {0, 2} <= set(group) for group in apart)


# --- laws ---------------------------------------------------------------------------------------------------

FAMILIES = ["Doe", "Roe", "Poe", "Kurtić"]
TITLES = [
    "Alpha networks for sequences",
    "Alpha-networks for sequences",
    "Beta decoding of models",
    "Beta decoding of models 2",
    "Mamba",
]
references = st.builds(
    lambda title, families, year, arxiv, doi, url, et_al: Reference(
        title=title,
        authors=tuple({"family": family} for family in families),
        year=year,
        arxiv_id=arxiv,
        doi=doi,
        url=url,
        et_al=et_al,
        kind="website" if url else "paper",
    ),
    st.sampled_from([*TITLES, ""]),
    st.lists(st.sampled_from(FAMILIES), max_size=3, unique=True),
    st.sampled_from([2018, 2019, 2023, None]),
    st.sampled_from([None, None, "2301.00001", "2301.00002"]),
    st.sampled_from([None, None, "10.1000/a", "10.1000/b"]),
    st.sampled_from([None, None, None, "https://example.org/x"]),
    st.booleans(),
)


def as_sets(found, order):
    return {frozenset(order[index] for index in group) for group in found}


@settings(max_examples=150, deadline=None)
@given(st.lists(references, min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_change_the_works(listed, rnd):
    nodes = [Node(signature(one.as_json(), 1), keys_of(one), one.title) for one in listed]
    distinct = {node.signature: node for node in nodes}
    marks = sorted(distinct)
    shuffled = marks[:]
    rnd.shuffle(shuffled)
    assert as_sets(partition([distinct[m] for m in marks]), marks) == as_sets(
        partition([distinct[m] for m in shuffled]), shuffled
    )


def stored_partition(session):
    rows = session.connection().execute(text("SELECT work_id, locator, source_id FROM record"))
    found = {}
    for work, locator, _source in rows:
        found.setdefault(work, set()).add(locator)
    return {frozenset(group) for group in found.values()}


def stored_fields(session):
    rows = session.connection().execute(
        text("SELECT id, title, year, venue, kind, arxiv_id, doi, url, first_author FROM work")
    )
    names = {}
    for work, locator in session.connection().execute(text("SELECT work_id, locator FROM record")):
        names.setdefault(work, []).append(locator)
    return {tuple(sorted(names[row[0]])): tuple(row[1:]) for row in rows}


def ingest_in(batches):
    with Session(make_engine("sqlite://")) as session:
        SQLModel.metadata.create_all(session.connection())
        for number, batch in enumerate(batches):
            ingest_records(
                session, SourceInfo(kind="bibtex", title=str(number), locator=f"{number}.bib"), batch
            )
        orphans = session.connection().execute(
            text("SELECT COUNT(*) FROM work WHERE id NOT IN (SELECT work_id FROM record)")
        )
        assert orphans.scalar_one() == 0
        wrong = session.connection().execute(
            text(
                "SELECT COUNT(*) FROM identifier JOIN record ON record.id = record_id WHERE identifier.work_id <> record.work_id"
            )
        )
        assert wrong.scalar_one() == 0
        return stored_partition(session), stored_fields(session)


@settings(max_examples=300, deadline=None)
@given(references, references)
def test_two_statements_alone_are_judged_as_among_others(one, other):
    """Two nodes have a way of their own; a third that shares nothing with them asks the general rules."""
    stranger = ref("Something else that nobody else has written about", [{"family": "Nemo"}], 1900)
    assert [*groups([one, other]), [2]] == groups([one, other, stranger])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(references, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_one_import_or_many_in_any_order_give_the_same_works(listed, rnd):
    """Works and their fields are a function of the set of records: incremental equals all at once."""
    from dataclasses import replace

    named = [replace(one, key=f"k{number}") for number, one in enumerate(listed)]
    whole = ingest_in([named])
    shuffled = named[:]
    rnd.shuffle(shuffled)
    cut = rnd.randint(1, len(shuffled) - 1)
    assert ingest_in([shuffled[:cut], shuffled[cut:]]) == whole
    assert ingest_in([[one] for one in shuffled]) == whole


def test_the_surveys_give_the_same_works_in_any_order():
    from ingest.curated import read_jsonl

    listed = {slug: read_jsonl(f"surveys/{slug}.jsonl") for slug in ("zhou", "yuan", "park")}
    found = []
    for order in (("zhou", "yuan", "park"), ("park", "yuan", "zhou")):
        with Session(make_engine("sqlite://")) as session:
            SQLModel.metadata.create_all(session.connection())
            for slug in order:
                rows = listed[slug][:]
                random.Random(1).shuffle(rows)
                ingest_records(session, SourceInfo(kind="survey", title=slug, slug=slug), rows)
            rows = session.connection().execute(
                text(
                    "SELECT record.work_id, source.slug || ':' || record.locator FROM record JOIN source ON source.id = source_id"
                )
            )
            works = {}
            for work, name in rows:
                works.setdefault(work, set()).add(name)
            found.append({frozenset(group) for group in works.values()})
    assert found[0] == found[1]
