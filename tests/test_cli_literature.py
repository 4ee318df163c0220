"""`kb references`, `dedupe`, `merge`, `unmerge` and provenance on the packaged database."""

import json

import pytest
from click.testing import CliRunner

from kb.cli import cli
from kb.store_provenance import provenance_of
from kb.store_references import survey_references

KEYS = ["number", "title", "first_author", "year", "arxiv_id", "doi", "url", "is_paper", "paper_id"]


def run(database, *arguments, code=0):
    result = CliRunner().invoke(cli, [*arguments, "--db", database])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.mark.parametrize(("survey", "count"), [("zhou", 313), ("yuan", 254), ("park", 140)])
def test_references_lists_every_row_in_the_surveys_order(database, survey, count):
    rows = json.loads(run(database, "references", survey, "--json"))
    assert [row["number"] for row in rows] == list(range(1, count + 1))
    assert all(list(row)[: len(KEYS)] == KEYS for row in rows)
    assert all(row["paper_id"] for row in rows)


def test_an_unknown_survey_is_named_with_the_known_ones(database):
    result = CliRunner().invoke(cli, ["references", "smith", "--db", database])
    assert result.exit_code != 0 or "zhou" in str(result.exception)


def test_a_row_that_only_prints_a_doi_shows_the_looked_up_title(reader):
    rows = {row["number"]: row for row in survey_references(reader, "park")}
    assert (
        rows[58]["title"]
        == "Efficient Memory Management for Large Language Model Serving with PagedAttention"
    )
    assert rows[58]["arxiv_id"] is None  # the row does not print it
    assert rows[58]["doi"] == "10.1145/3600006.3613165"
    assert rows[10]["url"].startswith("https://awsdocs-neuron")
    assert not rows[10]["is_paper"]


def test_a_blog_post_is_known_as_one_in_every_survey(reader):
    """Yuan 55 shows only authors, year and title; Zhou 246 gives the address of the same post."""
    yuan = {row["number"]: row for row in survey_references(reader, "yuan")}
    zhou = {row["number"]: row for row in survey_references(reader, "zhou")}
    assert yuan[55]["paper_id"] == zhou[246]["paper_id"]
    assert not yuan[55]["is_paper"]


def test_every_field_says_who_says_so(reader):
    slug = next(row["paper_id"] for row in survey_references(reader, "zhou") if row["number"] == 192)
    rows = provenance_of(reader, slug)
    titles = [row for row in rows if row["field"] == "title"]
    assert {(row["source"], row["locator"]) for row in titles} >= {
        ("zhou", "192"),
        ("yuan", "54"),
        ("park", "33"),
    }
    assert [row["source"] for row in titles if row["chosen"]] == [
        "park"
    ]  # the spelling that kept its capitals
    assert {row["value"] for row in rows if row["field"] == "cited by"} == {
        "zhou-2024-survey",
        "yuan-2024-llm-inference-unveiled",
        "park-2024-inference",
    }
    assert all(
        row["method"] and row["retrieved_at"] for row in rows if row["source"] in ("zhou", "yuan", "park")
    )


def test_the_packaged_literature_has_no_open_duplicates(database):
    answer = json.loads(run(database, "dedupe", "--check", "--json"))
    assert answer["proposals"] == []
    assert answer["united_by"]["arxiv"] > 50


def test_merge_and_unmerge_from_the_command_line(database, tmp_path):
    import shutil

    copy = str(tmp_path / "copy.sqlite")
    shutil.copy(database, copy)
    merged = json.loads(run(copy, "merge", "lin-2023-awq", "2210.17323", "--json"))
    assert merged["absorbed"] == "frantar-2022-gptq"
    undone = json.loads(run(copy, "unmerge", str(merged["id"]), "--json"))
    assert undone["absorbed"] == "frantar-2022-gptq"
    assert json.loads(run(copy, "show", "2210.17323", "--json"))["id"] == "frantar-2022-gptq"


def test_an_empty_database_holds_only_what_is_ingested(tmp_path):
    from pathlib import Path

    path = str(tmp_path / "own.sqlite")
    run(path, "db", "init", "--empty")
    page = Path(__file__).parent / "recorded" / "surveys" / "page.txt"
    answer = json.loads(run(path, "ingest", str(page), "--json"))
    assert (answer["read"], answer["new"]) == (8, 8)
    assert len(json.loads(run(path, "references", "example", "--json"))) == 8
    again = json.loads(run(path, "ingest", str(page), "--json"))
    assert (again["new"], again["matched"]) == (0, 8)
    assert json.loads(run(path, "list", "papers", "--json"))["total"] == 9


def test_dedupe_names_the_evidence_that_joined_records(tmp_path):
    """Three entries: two share a DOI up to case, two share a title up to case and hyphens."""
    path = str(tmp_path / "own.sqlite")
    run(path, "db", "init", "--empty")
    bib = tmp_path / "three.bib"
    bib.write_text(
        "@article{a, author={Doe, J. and Roe, R.}, year={2020}, doi={10.1109/SC41404.2022.00051}}\n"
        "@article{b, author={Doe, J. and Roe, R.}, title={On-line decoding of long sequences}, year={2020},"
        " doi={10.1109/sc41404.2022.00051}}\n"
        "@misc{c, author={Doe, Jane and Roe, R.}, title={{Online Decoding} of Long Sequences}, year={2020}}\n",
        encoding="utf-8",
    )
    answer = json.loads(run(path, "ingest", str(bib), "--json"))
    assert (answer["read"], answer["new"]) == (3, 1)
    assert json.loads(run(path, "dedupe", "--json"))["united_by"] == {"doi": 1, "title": 1}
    run(path, "dedupe", "--check", code=0)


def test_dedupe_check_exits_with_one_where_a_person_is_needed(tmp_path):
    path = str(tmp_path / "own.sqlite")
    run(path, "db", "init", "--empty")
    bib = tmp_path / "two.bib"
    bib.write_text(
        "@misc{a, author={Doe, J. and Roe, R. and Poe, E.}, title={Breaking the order of decoding}, year={2023}}\n"
        "@misc{b, author={Doe, J. and Roe, R. and Poe, E.}, title={Break the order of decoding}, year={2024}}\n",
        encoding="utf-8",
    )
    run(path, "ingest", str(bib))
    assert "authors and similar title" in run(path, "dedupe", "--check", code=1)
    run(path, "merge", "doe-2023-breaking", "doe-2024-break", "--different")
    run(path, "dedupe", "--check", code=0)


def test_search_follows_a_merge_and_its_undo(database, tmp_path):
    import shutil

    copy = str(tmp_path / "copy.sqlite")
    shutil.copy(database, copy)

    def found():
        answer = json.loads(
            run(copy, "search", "accurate post-training quantization gptq", "--type", "paper", "--json")
        )
        return [row["id"] for row in answer["results"]]

    assert "frantar-2022-gptq" in found()
    log = json.loads(run(copy, "merge", "lin-2023-awq", "frantar-2022-gptq", "--json"))
    assert "frantar-2022-gptq" not in found()
    assert "lin-2023-awq" in found()
    run(copy, "unmerge", str(log["id"]))
    assert "frantar-2022-gptq" in found()


def test_a_reference_string_is_read_before_anything_is_stored():
    text = "T. Dao, “Flashattention-2: Faster attention,” arXiv preprint arXiv:2307.08691, 2023."
    result = CliRunner().invoke(cli, ["parse-ref", text, "--json"])
    (found,) = json.loads(result.stdout)
    assert (found["title"], found["year"], found["arxiv_id"]) == (
        "Flashattention-2: Faster attention",
        2023,
        "2307.08691",
    )
    piped = CliRunner().invoke(cli, ["parse-ref"], input=f"{text}\n{text}\n")
    assert piped.stdout.count("Flashattention-2: Faster attention") == 2
    assert CliRunner().invoke(cli, ["parse-ref"], input="").exit_code == 2
