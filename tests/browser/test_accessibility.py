"""axe-core finds nothing, and nothing scrolls sideways, on every page, in both themes, at three widths."""

import pytest

pytestmark = pytest.mark.browser

PAGES = (
    "/",
    "/recommend?hardware=rtx-3090&model=llama-2-70b",
    "/recommend?hardware=a100-80gb-sxm&model=llama-3.1-8b&batch=256&objective=throughput",
    "/recommend?hardware=rtx3900&model=llama-2-70b",
    "/recommend?hardware=rtx-4090&model=llama-3.1-8b&why_not=1&top=200",
    "/search",
    "/search?q=kv+cache",
    "/search?q=zzzzqqqq",
    "/techniques",
    "/techniques?zhou=model&q=zzzz",
    "/techniques/awq",
    "/techniques/flashattention",
    "/papers",
    "/papers/lin-2023-awq",
    "/surveys",
    "/surveys/park",
    "/levels",
    "/bottlenecks",
    "/models",
    "/models/mixtral-8x7b",
    "/hardware",
    "/hardware/rtx-3090",
    "/engines",
    "/validation",
    "/validation/gains",
    "/validation/gains?technique=awq",
    "/recommend?hardware=My+card:+memory_gb%3D48,+bandwidth_gb_s%3D900,+fp16_tflops%3D180&model=llama-2-70b",
    "/compare",
    "/compare?ids=awq,gptq,smoothquant",
    "/graph",
    "/graph?root=lin-2023-awq",
    "/graph?shared=park,zhou",
    "/graph?from=2306.00978&to=2309.06180",
    "/api",
    "/no-such-page",
)
RUN = """async () => {
  const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]});
  if (found.passes.length < 10) return ["axe judged only " + found.passes.length + " rules"];
  return found.violations.map((one) => one.id + ": " + one.nodes.slice(0, 4).map((node) => node.target.join(" ") + " — " + node.any.concat(node.all, node.none).map((check) => check.message).join("; ")).join(" | "));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_no_violation_and_no_sideways_scroll(visit, axe, width, theme):
    page, watch = visit(width, theme, bypass_csp=True)
    faults = []
    for path in PAGES:
        page.goto(path)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            faults.append(f"{path}: scrolls sideways")
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        page.evaluate(axe)
        faults += [f"{path}: {fault}" for fault in page.evaluate(RUN)]
    assert not faults, "\n".join(faults)
    assert not watch.outside


@pytest.mark.parametrize(("width", "text"), [(640, "100%"), (1280, "200%")])
def test_enlarged_twice_nothing_is_cut(visit, width, text):
    """200 % zoom of a 1280 px window leaves 640 px; text alone may be enlarged as well."""
    page, _ = visit(width)
    for path in PAGES:
        page.goto(path)
        page.evaluate(f"document.documentElement.style.fontSize = '{text}'")
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        ), path
