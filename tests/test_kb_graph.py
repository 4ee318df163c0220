"""The citation graph: neighbours, paths, co-citation, coupling, ranks, communities, layout; and what stars cannot tell."""

import networkx
import pytest

from kb import graph, graph_measures
from kb.errors import InvalidQuery, NotFound

# A DAG: citing → cited, in list order. s1 … s3 are surveys in the first data set only.
CHAIN = {"new": ["mid", "other"], "mid": ["old"], "other": ["old", "lone"], "late": ["new"]}
YEARS = {"old": 2017, "mid": 2020, "new": 2023, "other": 2021, "lone": 2016, "late": 2024, "apart": 2020}


def make(path, citations, years, surveys=()):
    from sqlmodel import SQLModel

    from kb import models
    from kb.db import open_session

    with open_session(str(path)) as session:
        SQLModel.metadata.create_all(session.connection())
        session.add(models.Source(slug="s", kind="bibtex", title="s"))
        session.flush()
        works, records = {}, {}
        for slug, year in years.items():
            works[slug] = models.Work(slug=slug, title=f"Title of {slug}", year=year, first_author="A")
            session.add(works[slug])
            session.flush()
            records[slug] = models.Record(source_id=1, locator=slug, work_id=works[slug].id)
            session.add(records[slug])
            session.flush()
        for slug in surveys:
            session.add(models.Survey(slug=slug, work_id=works[slug].id, name=slug))
        for citing, listed in citations.items():
            for number, cited in enumerate(listed, start=1):
                record = models.Record(source_id=1, locator=f"{citing}:{number}", work_id=works[cited].id)
                session.add(record)
                session.flush()
                session.add(
                    models.Citation(
                        citing_record_id=records[citing].id, citing_id=works[citing].id, cited_id=works[cited].id,
                        record_id=record.id, number=number,
                    )
                )  # fmt: skip
    return str(path)


@pytest.fixture
def chain(tmp_path):
    from kb.db import open_reader

    reader = open_reader(make(tmp_path / "chain.sqlite", CHAIN, YEARS))
    yield reader
    reader.close()


@pytest.fixture
def stars(tmp_path):
    from kb.db import open_reader

    lists = {"zhou": ["a", "b", "c", "d"], "yuan": ["b", "c", "e"], "park": ["c", "f"]}
    years = {**dict.fromkeys("abcdef", 2020), "zhou": 2024, "yuan": 2024, "park": 2024, "c": 2022}
    reader = open_reader(make(tmp_path / "stars.sqlite", lists, years, surveys=lists))
    yield reader
    reader.close()


def ids(items):
    return [item["id"] for item in items]


def test_neighbours_by_direction_and_depth(chain):
    assert set(ids(graph.neighbours(chain, "new")["nodes"])) == {"new", "mid", "other", "late"}
    assert set(ids(graph.neighbours(chain, "new", direction="references")["nodes"])) == {
        "new",
        "mid",
        "other",
    }
    assert set(ids(graph.neighbours(chain, "new", direction="cited-by")["nodes"])) == {"new", "late"}
    deep = graph.neighbours(chain, "new", depth=2)
    assert {node["id"]: node["distance"] for node in deep["nodes"]} == {
        "new": 0,
        "mid": 1,
        "other": 1,
        "late": 1,
        "old": 2,
        "lone": 2,
    }
    assert {(e["from"], e["to"], e["number"]) for e in deep["edges"]} == {
        ("new", "mid", 1), ("new", "other", 2), ("mid", "old", 1), ("other", "old", 1), ("other", "lone", 2), ("late", "new", 1)}  # fmt: skip


def test_a_large_neighbourhood_is_summarised(chain):
    answer = graph.neighbours(chain, "new", depth=2, limit=3)
    assert len(answer["nodes"]) == 3 and answer["total"] == 6
    assert answer["summary"]["hidden"] == 3 and answer["summary"]["by_distance"] == {1: 1, 2: 2}
    kept = set(ids(answer["nodes"]))
    assert all(e["from"] in kept and e["to"] in kept for e in answer["edges"])


def test_shortest_path_whatever_the_direction(chain):
    answer = graph.shortest_path(chain, "late", "old")
    assert answer["found"] and answer["length"] == 3 and answer["count"] == 2
    assert ids(answer["nodes"])[0] == "late" and ids(answer["nodes"])[-1] == "old"
    assert all(e["type"] == "cites" for e in answer["edges"])
    assert graph.shortest_path(chain, "old", "old")["length"] == 0
    none = graph.shortest_path(chain, "old", "apart")
    assert not none["found"] and none["nodes"] == []


def test_co_cited_and_coupled(chain):
    found = graph.co_cited(chain, "mid")
    assert [(i["id"], i["strength"], i["jaccard"]) for i in found["items"]] == [("other", 1, 1.0)]
    found = graph.coupled(chain, "mid")
    assert [(i["id"], i["strength"], i["jaccard"]) for i in found["items"]] == [("other", 1, 0.5)]


@pytest.mark.parametrize("measure", ["pagerank", "citations", "per-year"])
def test_ranks_explain_themselves(chain, measure):
    answer = graph_measures.rank(chain, measure=measure)
    assert answer["meaning"] and answer["scope"]["works"] == len(YEARS)
    scores = [item["score"] for item in answer["items"]]
    assert scores == sorted(scores, reverse=True) and [i["rank"] for i in answer["items"]] == list(
        range(1, len(scores) + 1)
    )


def test_pagerank_equals_networkx(chain, reader):
    for source in (chain, reader):
        mine = {i["id"]: i["score"] for i in graph_measures.rank(source, limit=10_000)["items"]}
        directed = networkx.DiGraph(
            (row["a"], row["b"])
            for row in source.rows(
                "SELECT a.slug AS a, b.slug AS b FROM citation c JOIN work a ON a.id = c.citing_id JOIN work b ON b.id = c.cited_id"
            )
        )
        directed.remove_edges_from(list(networkx.selfloop_edges(directed)))
        theirs = networkx.pagerank(directed, alpha=0.85, tol=1e-10, max_iter=500)
        assert mine.keys() == theirs.keys()
        assert mine == pytest.approx(theirs, abs=2e-8)


def test_age_does_not_decide_per_year(chain):
    old = graph_measures.rank(chain, measure="citations")["items"]
    fair = graph_measures.rank(chain, measure="per-year")["items"]
    assert old[0]["id"] == "old"  # two citations since 2017
    assert fair[0]["id"] == "new" and fair[0]["score"] == 0.5  # one in 2023 and 2024
    recent = graph_measures.rank(chain, measure="citations", year_from=2021)
    assert set(ids(recent["items"])) == {"new", "other"}


def test_stars_say_what_they_cannot_tell(stars, chain):
    assert (
        graph.neighbours(stars, "zhou")["scope"]["stars"]
        and graph.neighbours(stars, "zhou")["scope"]["cannot"]
    )
    assert not graph.neighbours(chain, "new")["scope"]["stars"]


def test_overlap_of_lists(stars):
    answer = graph.overlap(stars)
    assert {tuple(p["surveys"]): p["works"] for p in answer["pairs"]} == {
        ("park", "yuan"): 1,
        ("park", "zhou"): 1,
        ("yuan", "zhou"): 2,
    }
    assert answer["distinct"] == 6 and answer["all"]["works"] == 1 and ids(answer["all"]["items"]) == ["c"]


def test_communities_of_stars_are_the_lists(stars):
    groups = {g["name"]: g["size"] for g in graph_measures.communities(stars)["groups"]}
    assert groups == {"zhou": 2, "yuan": 1, "park": 1, "yuan + zhou": 1, "park + yuan + zhou": 1}


def test_communities_of_a_real_graph(chain):
    answer = graph_measures.communities(chain)
    assert sum(g["size"] for g in answer["groups"]) == 6 and "Louvain" in answer["method"]


def test_works_by_number_and_errors(stars):
    assert graph.shortest_path(stars, "zhou:2", "yuan:1")["length"] == 0
    with pytest.raises(NotFound):
        graph.neighbours(stars, "zzz")
    with pytest.raises(InvalidQuery):
        graph.neighbours(stars, "zhou", depth=9)
    with pytest.raises(InvalidQuery):
        graph.neighbours(stars, "zhou", direction="up")
    with pytest.raises(InvalidQuery):
        graph_measures.rank(stars, measure="fame")


def test_the_timeline_is_the_same_every_time_and_inside_its_box(stars, reader):
    one, two = graph_measures.timeline(stars), graph_measures.place(graph.read_graph(stars), None, {}, 5000)
    assert one == two
    for node in graph_measures.timeline(reader)["nodes"]:
        assert 0 <= node["x"] <= 1 and 0 <= node["y"] <= 1
    lanes = graph_measures.timeline(stars, lanes={"a": "upper", "b": "lower"})
    places = {node["id"]: node for node in lanes["nodes"]}
    assert places["b"]["y"] < places["a"]["y"] and lanes["lanes"] == ["", "lower", "upper"]
    by_year = {n["year"]: n["x"] for n in sorted(one["nodes"], key=lambda n: n["x"])}
    assert list(by_year) == sorted(by_year)


def test_the_surveys_share_what_was_counted_by_hand(reader):
    """31 works in all three lists; 93, 65 and 45 pairwise; 530 distinct (the issue's numbers)."""
    answer = graph.overlap(reader)
    assert {tuple(p["surveys"]): p["works"] for p in answer["pairs"]} == {
        ("yuan", "zhou"): 93, ("park", "zhou"): 65, ("park", "yuan"): 45}  # fmt: skip
    assert answer["all"]["works"] == 31 and answer["distinct"] == 530


def test_the_graph_is_loaded_again_when_the_data_change(tmp_path):
    from kb import models
    from kb.db import open_reader, open_session

    path = make(tmp_path / "g.sqlite", CHAIN, YEARS)
    reader = open_reader(path)
    first = graph.load_graph(reader)
    assert graph.load_graph(reader) is first
    with open_session(path) as session:
        record = models.Record(source_id=1, locator="x", work_id=5)
        session.add(record)
        session.flush()
        session.add(
            models.Citation(citing_record_id=2, citing_id=2, cited_id=5, record_id=record.id, number=9)
        )
    assert graph.load_graph(reader).edge_count == first.edge_count + 1
    reader.close()
