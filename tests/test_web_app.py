"""The web face over the packaged database: shapes, errors, caching, safety."""

import html
import json
import re
import shutil
import sqlite3

import pytest

from kb.db import open_reader
from web.deps import FRESHNESS_S, Library

PAGES = (
    "/",
    "/recommend?hardware=rtx-3090&model=llama-2-70b",
    "/recommend",
    "/search",
    "/search?q=paged+attention",
    "/techniques",
    "/techniques?zhou=model&bottleneck=kv-bandwidth",
    "/techniques/awq",
    "/papers",
    "/papers?q=attention&survey=zhou",
    "/surveys",
    "/surveys/zhou",
    "/levels",
    "/bottlenecks",
    "/models",
    "/models/llama-2-70b",
    "/hardware",
    "/hardware/rtx-3090",
    "/engines",
    "/api",
    "/validation",
    "/validation/gains",
    "/validation/gains?technique=awq&state=scored&sort=technique",
    "/validation/gains?state=nonsense&technique=zzz",
    "/compare",
    "/compare?ids=awq,gptq,smoothquant",
    "/graph",
    "/graph?root=2306.00978",
    "/graph?from=2306.00978&to=2309.06180",
)


@pytest.mark.parametrize("path", PAGES)
def test_page_is_complete(web, path):
    answer = web.get(path)
    assert answer.status_code == 200
    body = answer.text
    assert body.count("<h1") == 1
    assert '<html lang="en">' in body and '<main class="wrap" id="main">' in body
    assert not re.search(r"<[^>]+\sstyle=", body), "inline styles break the content policy"
    assert not re.search(r"<script(?![^>]*\ssrc=)", body), "inline scripts break the content policy"
    assert "None" not in re.sub(r"<[^>]+>", " ", body), "a missing value is shown as a Python word"


def test_policy_and_no_outside_assets(web):
    answer = web.get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers
    assert not re.search(r'(?:src|href)="https?://[^"]*\.(?:js|css)', answer.text)


@pytest.mark.parametrize("path", ["/", "/techniques/awq", "/api/v1/techniques?limit=3"])
def test_etag_answers_304(web, path):
    first = web.get(path)
    tag = first.headers["etag"]
    again = web.get(path, headers={"if-none-match": tag})
    assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == tag
    other = web.get(path, headers={"if-none-match": 'W/"something-else"'})
    assert other.status_code == 200 and other.text == first.text


def test_head_has_no_body(web):
    answer = web.head("/techniques")
    assert answer.status_code == 200 and answer.content == b""
    assert int(answer.headers["content-length"]) > 1000


def test_compressed_only_for_those_who_ask(web):
    plain = web.get("/techniques", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    small = web.get("/techniques", headers={"accept-encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip" and small.text == plain.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nope", 404, "not-found"),
        ("GET", "/api/v1/papers/no-such-paper", 404, "not-found"),
        ("GET", "/api/v1/techniques/no-such-technique", 404, "not-found"),
        ("DELETE", "/api/v1/techniques", 405, "method-not-allowed"),
        ("GET", "/api/v1/techniques?limit=0", 422, "invalid-value"),
        ("GET", "/api/v1/techniques?limit=201", 422, "invalid-value"),
        ("GET", "/api/v1/techniques?cursor=!!", 404, "not-found"),
        ("GET", "/api/v1/estimate?hardware=rtx-3090&model=70b&tensor_parallel=4", 409, "conflict"),
        ("GET", "/api/v1/techniques?colour=red", 422, "invalid-query"),
        ("GET", "/api/v1/recommend?hardware=rtx3900&model=70b", 404, "unknown-name"),
        ("GET", "/api/v1/recommend?hardware=rtx-3090", 422, "invalid-value"),
        ("GET", "/api/v1/estimate?hardware=rtx-3090&model=70b&batch=0", 422, "invalid-value"),
        ("GET", "/api/v1/estimate?hardware=rtx-3090&model=70b&objective=ttft", 422, "invalid-value"),
        ("GET", "/api/v1/estimate?hardware=rtx-3090&model=%2Fetc%2Fpasswd", 404, "unknown-name"),
    ],
)
def test_errors_have_one_shape(web, method, path, status, code):
    answer = web.request(method, path)
    assert answer.status_code == status
    body = answer.json()
    assert set(body) == {"error"} and set(body["error"]) == {"code", "message", "hint", "field"}
    assert body["error"]["code"] == code
    assert body["error"]["message"] and "Traceback" not in answer.text and "SELECT" not in answer.text


@pytest.mark.parametrize("body", ["", "[]", "3", "{", '"x"', "null"])
def test_bodies_that_are_no_object(web, body):
    answer = web.post("/api/v1/recommend", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422 and answer.json()["error"]["message"]


@pytest.mark.parametrize("wrong", [{"stack": 0}, {"lossless": "yes"}, {"batch": "8"}, {"interconnect": 3}])
def test_bodies_use_the_types_of_json(web, wrong):
    answer = web.post("/api/v1/recommend", json={"hardware": "rtx-3090", "model": "70b", **wrong})
    assert answer.status_code == 422 and answer.json()["error"]["field"] == next(iter(wrong))


def test_error_pages_name_the_nearest(web):
    answer = web.get("/techniques/awqq")
    assert answer.status_code == 404
    assert 'href="/techniques/awq"' in answer.text and answer.headers["content-type"].startswith("text/html")


def test_a_faulty_question_keeps_the_form_and_shows_no_figures(web):
    answer = web.get("/recommend?hardware=rtx3900&model=llama-2-70b&batch=7")
    assert answer.status_code == 404
    assert 'value="rtx3900"' in answer.text and 'value="7"' in answer.text
    assert "Decode speed" not in answer.text and "rtx-3090" in answer.text


def test_unknown_parameters_are_noticed(web):
    assert "does not know colour" in web.get("/techniques?colour=red").text


@pytest.mark.parametrize(
    ("alias", "kind"),
    [
        ("2306.00978", "papers"),
        ("arXiv:2306.00978v5", "papers"),
        ("https://arxiv.org/abs/2306.00978", "papers"),
    ],
)
def test_aliases_lead_to_the_canonical_address(web, alias, kind):
    answer = web.get(f"/{kind}/{alias}", follow_redirects=False)
    assert answer.status_code == 301 and answer.headers["location"].startswith(f"/{kind}/")
    assert web.get(answer.headers["location"]).status_code == 200


def test_every_work_and_technique_has_a_page(web, library):
    """A sample over the whole alphabet; each page is found under the slug that lists print."""
    snapshot = library.snapshot()
    for work in snapshot.works[::40]:
        assert web.get(f"/papers/{work['slug']}").status_code == 200, work["slug"]
    for technique in snapshot.techniques[::40]:
        assert web.get(f"/techniques/{technique['slug']}").status_code == 200, technique["slug"]


def test_cursors_reach_every_item_once(web):
    seen, url = [], "/api/v1/papers?limit=150"
    while url:
        answer = web.get(url)
        body = answer.json()
        seen += [item["id"] for item in body["items"]]
        found = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers.get("link", ""))
        assert bool(found) == bool(body["next"])
        url = found[1] if found else None
    assert len(seen) == len(set(seen)) == body["total"]


def test_same_numbers_on_every_face(web, library):
    """REST, the page and the service agree for the same question."""
    from recommender.service import recommend

    question = {"hardware": "rtx-3090", "model": "llama-2-70b"}
    expected = recommend(library.reader(), question).as_dict()
    posted = web.post("/api/v1/recommend", json=question).json()
    got = web.get("/api/v1/recommend", params=question).json()
    assert posted == got == json.loads(json.dumps(expected))
    page = web.get("/recommend", params=question).text
    from web.formats import milliseconds, ratio

    for option in expected["recommendations"][:5]:
        assert milliseconds(option["estimate"]["e2e_ms"]) in page
        assert ratio(option["gain"]["latency"]) in page
    assert len(expected["rejected"]) > 0 and f"{len(expected['rejected']):,} technique" in page


def test_a_device_that_is_not_listed_is_a_link_like_any_other(web):
    form = {
        "hardware": "My card",
        "model": "7b",
        "memory_gb": "24",
        "bandwidth_gb_s": "936",
        "fp16_tflops": "71",
    }
    moved = web.get("/recommend", params=form, follow_redirects=False)
    assert moved.status_code == 301 and "My+card:+memory_gb%3D24" in moved.headers["location"]
    page = web.get(moved.headers["location"])
    assert page.status_code == 200 and 'name="memory_gb" value="24"' in page.text
    line = "My card: memory_gb=24, bandwidth_gb_s=936, fp16_tflops=71"
    by_get = web.get("/api/v1/estimate", params={"hardware": line, "model": "7b"}).json()
    by_post = web.post("/api/v1/estimate", json={"hardware": line, "model": "7b"}).json()
    assert by_get == by_post and by_get["memory_bytes"]["available"] == 24 * 2**30
    rows = web.get(
        "/api/v1/sweep", params={"hardware": line, "model": "7b", "batch": "1,2"}
    ).text.splitlines()
    assert json.loads(rows[0])["tpot_ms"] == by_get["tpot_ms"]
    wrong = web.get("/recommend", params={**form, "fp16_tflops": "fast"})
    assert wrong.status_code == 422 and 'name="fp16_tflops" value="fast"' in wrong.text
    both = web.get("/recommend", params={**form, "hardware": "rtx-3090"})
    assert both.status_code == 409 and "Rtx-3090 is listed" in both.text


def test_published_gains_are_those_of_the_backtest(web, library):
    from recommender.backtest import backtest

    rows = [row for items in library.knowledge().evidence.values() for row in items]
    expected = backtest(rows, library.knowledge())["summary"]
    shown = web.get("/validation/gains?format=json").json()
    assert shown["total"] == expected["n_rows"] == len(rows)
    for name in ("n", "scored", "within_1_25x", "direction_accuracy", "median_factor", "maxima"):
        assert shown["summary"][name] == pytest.approx(expected[name]), name
    some = web.get("/validation/gains?technique=awq&format=json").json()
    assert 0 < some["total"] < shown["total"] and {row["technique"] for row in some["rows"]} == {"awq"}
    table = web.get("/validation/gains?technique=awq&format=csv").text.splitlines()
    assert len(table) == some["total"] + 1 and table[0].startswith("id,technique,metric,reported,predicted")
    assert web.get("/validation/gains/chart.json?technique=awq").json()["data"]
    assert "/validation/gains" in web.get("/validation").text


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/recommend?hardware=rtx-3090&model=70b", "kb recommend --hw rtx-3090 --model 70b --json"),
        ("/techniques/awq", "kb show awq"),
        ("/validation", "kb validate --json"),
    ],
)
def test_a_wrong_number_can_be_reported_without_any_request(web, path, command):
    body = html.unescape(web.get(path).text)
    report = re.search(r'<pre id="report"[^>]*>(.*?)</pre>', body, re.S)[1]
    assert f"Page: {path}\n" in report and f"Reproduce: {command}\n" in report
    assert re.search(r"Version: kb \S+, data [0-9a-f]{8}\nShown: .{20,}", report)
    assert 'data-copy="report"' in body and "mailto:" not in body


@pytest.mark.parametrize(
    "name", ["type", "level", "bottleneck", "phase", "training", "survey", "kind", "role"]
)
def test_search_refuses_a_filter_that_nothing_has(web, name):
    """As the lists do; within the words of a search it stays a note."""
    answer = web.get("/api/v1/search", params={"q": "attention", name: "no such"})
    assert answer.status_code == 404 and answer.json()["error"]["field"] == name
    assert answer.json()["error"]["hint"].startswith(("known: ", "did you mean"))
    said = web.get("/api/v1/search", params={"q": f'attention {name}:"no such"'})
    assert said.status_code == 200 and any(note.startswith(f"no {name} ") for note in said.json()["notes"])


def test_sweep_streams_one_row_per_combination(web):
    body = {
        "hardware": "rtx-3090",
        "model": "llama-2-7b",
        "batch": [1, 2, 4],
        "weight_format": ["fp16", "int4"],
    }
    answer = web.post("/api/v1/sweep", json=body)
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [(row["batch"], row["weight_format"]) for row in rows] == [
        (batch, form) for batch in (1, 2, 4) for form in ("fp16", "int4")
    ]
    single = web.get("/api/v1/estimate?hardware=rtx-3090&model=llama-2-7b&batch=2&weight_format=int4").json()
    assert rows[3]["tpot_ms"] == pytest.approx(single["tpot_ms"])
    linked = web.get("/api/v1/sweep?hardware=rtx-3090&model=llama-2-7b&batch=1,2,4&weight_format=fp16,int4")
    assert linked.text == answer.text


@pytest.mark.parametrize(
    "query",
    [
        "KV-cache",
        "FlashAttention-2",
        "LLM.int8()",
        "QuIP#",
        "C++",
        '"',
        "'",
        "\U0001f525",
        "a" * 10_000,
        "*",
        "-",
        "OR",
        "%",
    ],
)
def test_search_never_fails(web, query):
    assert web.get("/search", params={"q": query}).status_code == 200
    assert web.get("/papers", params={"q": query}).status_code == 200
    assert web.get("/api/v1/search", params={"q": query}).status_code == 200


def test_openapi_describes_everything(web):
    document = web.get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary") and operation.get("description"), f"{method} {path}"
            for parameter in operation.get("parameters", []):
                assert parameter["in"] == "path" or parameter.get("description"), (
                    f"{path} {parameter['name']}"
                )
    body = document["paths"]["/api/v1/recommend"]["post"]["requestBody"]["content"]["application/json"]
    assert body["examples"] and body["schema"]["additionalProperties"] is False


def test_get_changes_nothing(web, library):
    """Every GET of the application leaves the database's contents as they were."""
    reader = library.reader()
    before = (
        reader.one("SELECT COUNT(*) AS n, MAX(id) AS last FROM record"),
        reader.one("PRAGMA data_version"),
    )
    for path in (*PAGES, "/api/v1/techniques", "/api/v1/search?q=x", "/api/v1/health"):
        web.get(path)
    assert before == (
        reader.one("SELECT COUNT(*) AS n, MAX(id) AS last FROM record"),
        reader.one("PRAGMA data_version"),
    )


def test_what_another_process_changes_is_seen_after_a_moment(database, tmp_path, monkeypatch):
    """Answers ask for changes once a second, not each time; what they then find is new knowledge."""
    path = tmp_path / "kb.sqlite"
    shutil.copy(database, path)
    library = Library(lambda: open_reader(f"sqlite:///{path}"))
    now = [0.0]
    monkeypatch.setattr("web.deps.time.monotonic", lambda: now[0])
    first = library.knowledge()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = 'data_digest'")
    connection.close()
    assert library.knowledge() is first
    now[0] = FRESHNESS_S
    second = library.knowledge()
    assert second is not first and library.knowledge() is second
    library.close()


def test_pages_stay_within_the_budget(web):
    for path in PAGES:
        answer = web.get(path, headers={"accept-encoding": "gzip"})
        assert int(answer.headers["content-length"]) <= 25_000, path


def test_first_view_needs_four_requests_and_sixty_kilobytes(web):
    total, page = 0, web.get("/recommend?hardware=rtx-3090&model=llama-2-70b")
    total += int(page.headers["content-length"])
    assets = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assets = [asset for asset in dict.fromkeys(assets) if not asset.startswith("/static/plot")]
    assert len(assets) <= 3
    for asset in assets:
        answer = web.get(asset, headers={"accept-encoding": "gzip"})
        assert "immutable" in answer.headers["cache-control"]
        total += int(answer.headers["content-length"])
    assert total <= 60_000


@pytest.mark.parametrize(
    "ident", ["x=r", "card: memory_gb=nan", "rtx-3090 + epyc-9654", "4 x h100", "no-such-device"]
)
def test_what_is_no_devices_name_is_not_found(web, ident):
    found = web.get(f"/api/v1/hardware/{ident}")
    assert found.status_code == 404 and set(found.json()["error"]) == {"code", "message", "hint", "field"}
