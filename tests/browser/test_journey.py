"""Ask → answer → paper → graph → back, as a reader does it."""

import re

import pytest

pytestmark = pytest.mark.browser


def test_ask_answer_paper_graph_and_back(visit, library):
    from recommender.service import recommend
    from web.formats import milliseconds, ratio

    page, watch = visit()
    page.goto("/")
    page.get_by_role("combobox", name="Hardware").fill("rtx3090")
    page.get_by_role("combobox", name="Model").fill("70b")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_url("**/recommend?*")
    assert page.url.endswith("/recommend?hardware=rtx3090&model=70b"), "defaults stay out of the address"
    expected = recommend(library.reader(), {"hardware": "rtx3090", "model": "70b"}).as_dict()
    shown = page.inner_text("main")
    for option in expected["recommendations"][:5]:
        assert ratio(option["gain"]["latency"]) in shown
        assert milliseconds(option["estimate"]["e2e_ms"]) in shown
    assert page.locator("h1").inner_text() == expected["verdict"]["text"]
    paper = page.locator("details[open] ul a[href^='/papers/']").first
    title = paper.inner_text()
    paper.click()
    assert page.locator("h1").inner_text() == title
    page.get_by_role("link", name="Citation graph").click()
    assert "/graph?root=" in page.url
    page.locator("svg.tl a").first.click()
    assert re.search(r"/graph\\?root=", page.url) or "/graph" in page.url
    page.go_back()
    page.go_back()
    assert page.locator("h1").inner_text() == title
    page.go_back()
    assert page.locator("h1").inner_text() == expected["verdict"]["text"]
    assert watch.console == [] and watch.outside == []


def test_keyboard_alone_reaches_an_answer(visit):
    page, watch = visit()
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.get_by_role("combobox", name="Hardware").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("h100-sxm")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("llama-2-7b")
    page.keyboard.press("Enter")
    page.wait_for_url("**/recommend?*")
    assert page.locator("h1").count() == 1 and watch.console == []


def test_works_without_javascript(visit):
    page, _ = visit(java_script_enabled=False)
    page.goto("/")
    page.get_by_role("button", name="Answer").click()
    assert page.locator("svg.ch").count() >= 6
    assert page.locator("button[data-copy]:visible").count() == 0


def test_charts_can_be_explored_under_the_strict_policy(visit):
    page, watch = visit()
    page.goto("/recommend?hardware=a100-80gb-sxm&model=llama-2-7b")
    before = page.evaluate(
        "performance.getEntriesByType('resource').map((one) => one.name).filter((one) => one.includes('plotly'))"
    )
    assert before == [], "plotly.js is loaded on demand only"
    page.locator("[data-explore]").first.click()
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    assert watch.console == [] and watch.outside == []


def test_theme_is_remembered(visit):
    page, watch = visit()
    page.goto("/")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto("/papers")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 27)"
    assert watch.console == []


def test_first_view_is_small_and_does_not_shift(visit):
    """Its time is a benchmark's matter (benchmarks/web.py --chromium): machines differ, sizes and shifts do not."""
    page, _ = visit()
    script = """() => new Promise((resolve) => {
      let shift = 0;
      new PerformanceObserver((list) => { for (const one of list.getEntries()) shift += one.value; }).observe({type: "layout-shift", buffered: true});
      setTimeout(() => resolve({
        shift,
        requests: performance.getEntriesByType("resource").length + 1,
        bytes: performance.getEntriesByType("resource").reduce((sum, one) => sum + one.encodedBodySize, performance.getEntriesByType("navigation")[0].encodedBodySize),
        html: performance.getEntriesByType("navigation")[0].encodedBodySize,
        nodes: document.querySelectorAll("*").length,
      }), 300);
    })"""
    for path in (
        "/",
        "/recommend?hardware=rtx-3090&model=llama-2-70b",
        "/recommend?hardware=a100-80gb-sxm&model=llama-3.1-8b&batch=64&objective=throughput",
        "/techniques",
        "/papers",
        "/techniques/awq",
        "/graph",
        "/validation",
        "/validation/gains",
        "/search?q=kv+cache",
        "/compare?ids=awq,gptq,smoothquant",
        "/levels",
    ):
        page.goto(path)
        seen = page.evaluate(script)
        assert seen["shift"] == 0, path
        assert seen["requests"] <= 4 and seen["bytes"] <= 60_000 and seen["html"] <= 25_000, f"{path}: {seen}"
        assert seen["nodes"] <= 1_500, f"{path}: {seen['nodes']} nodes"
