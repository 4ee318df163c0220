"""The worked scenarios of docs/guide: the commands run, and the answers agree with the arithmetic on the pages."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
SCENARIOS = {
    item["slug"]: item
    for item in tomllib.loads((GUIDE / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]
}


@pytest.fixture(scope="module")
def answers(database) -> dict[str, Any]:
    from kb.cli import cli

    found = {}
    for slug, scenario in SCENARIOS.items():
        words = shlex.split(scenario["command"])[1:]
        result = CliRunner().invoke(
            cli, [*words, "--json", "--quiet"], env={"KB_DATABASE_URL": f"sqlite:///{database}"}
        )
        assert result.exit_code == 0, (slug, result.output)
        found[slug] = json.loads(result.stdout)
    return found


def gain(answer: dict[str, Any], technique: str, metric: str) -> float:
    """Gain of a technique alone, recommended, member of a recommended mechanism, or rejected."""
    for item in answer["recommendations"]:
        if item["kind"] == "technique" and technique in (*item["techniques"], *item["members"]):
            return float(item["gain"][metric])
    for item in answer["rejected"]:
        if item["technique"] == technique and item["gain"]:
            return float(item["gain"][metric])
    raise AssertionError(f"{technique} has no gain")


def code(answer: dict[str, Any], technique: str) -> str | None:
    return next((item["code"] for item in answer["rejected"] if item["technique"] == technique), None)


def test_there_are_ten_and_each_has_its_page():
    assert len(SCENARIOS) == 10
    pages = sorted(path.name for path in GUIDE.glob("[0-9]*.md"))
    assert [page[3:-3] for page in pages] == list(SCENARIOS)
    for page, scenario in zip(pages, SCENARIOS.values(), strict=True):
        text = (GUIDE / page).read_text(encoding="utf-8")
        assert f"$ {scenario['command']}" in text
        assert scenario["by_hand"].strip() in text
        assert scenario["doubt"] in text


def test_70b_on_one_3090_needs_about_two_bits(answers):
    answer = answers["70b-on-one-3090"]
    assert not answer["baseline"]["fits"]
    # 69e9 weights of 2 bytes and a little more, against 24 GiB.
    assert answer["baseline"]["memory_bytes"]["weights"] == pytest.approx(138e9, rel=0.01)
    assert answer["baseline"]["memory_bytes"]["available"] <= 25.8e9
    best = answer["recommendations"][0]
    assert best["makes_it_fit"]
    assert code(answer, "gptq") == "does-not-fit"
    # 2-bit weights take 17 GB; 936 GB/s read them no more than 55 times a second.
    two_bits = [r for r in answer["recommendations"] if r["kind"] == "technique" and r["estimate"]["fits"]]
    quantized = [
        r
        for r in two_bits
        if r["estimate"]["memory_bytes"]["weights"] < 26e9 and "host_weight_share" not in r["deployment"]
    ]
    assert quantized and all(r["estimate"]["tpot_ms"] > 1000 / 55 for r in quantized)


def test_8b_chat_on_a_4090_multiplies_fewer_bytes_and_more_tokens(answers):
    answer = answers["8b-chat-on-a-4090"]
    assert answer["baseline"]["fits"]
    # 16.1 GB at 1,008 GB/s.
    assert answer["baseline"]["tpot_ms"] > 16.06e9 / 1008e9 * 1000
    assert answer["baseline"]["bottleneck"] == "weight-bandwidth"
    assert 1.8 < gain(answer, "awq", "tpot") < 3.4
    # 4 bits leave the prompt's 16.4 TFLOP as they are.
    assert gain(answer, "awq", "ttft") < 1.05
    for present in ("paged-attention", "flashattention", "continuous-batching"):
        assert code(answer, present) in ("already-in-use", "no-gain", "not-applicable"), present


def test_70b_on_four_l40s_gains_less_than_the_weights_shrink(answers):
    answer = answers["70b-on-four-l40s"]
    assert answer["baseline"]["fits"]
    # A quarter of 141 GB at 864 GB/s, exchange and prompts not counted.
    assert answer["baseline"]["tpot_ms"] > 141.1e9 / 4 / 864e9 * 1000
    assert 1.3 < gain(answer, "awq", "tpot") < 2.5
    assert 1.1 < gain(answer, "fp8-w8a8", "tpot") < gain(answer, "awq", "tpot")


def test_long_contexts_on_an_h100_reuse_the_cache_first(answers):
    answer = answers["long-context-rag-on-h100"]
    assert answer["baseline"]["prefill"]["bound"] == "compute"
    # (0.51 + 0.27) PFLOP at the peak of 989 TFLOP/s is 0.79 s.
    assert answer["baseline"]["ttft_ms"] > 790
    # With half of the tokens cached: (0.51 + 0.27) / (0.51 / 2 + 0.27 * 3 / 4) = 1.71.
    assert gain(answer, "prefix-caching", "ttft") == pytest.approx(1.71, rel=0.1)
    assert gain(answer, "awq", "ttft") < 1.05
    plans = [item for item in answer["recommendations"] if item["kind"] == "plan"]
    shorter = {"semantic-compression", "llmlingua", "longllmlingua", "recomp", "selective-context"}
    assert all(
        not shorter & set(plan["techniques"]) or "prefix-caching" not in plan["techniques"] for plan in plans
    )


def test_offline_on_an_a100_prefers_int8_products(answers):
    answer = answers["offline-batch-on-a100"]
    # 256 sequences; 131,072 bytes per token; 640 tokens on average, 768 at the end.
    assert (
        256 * 640 * 131072 * 0.95 < answer["baseline"]["memory_bytes"]["kv_cache"] < 256 * 768 * 131072 * 1.1
    )
    assert 1.2 < gain(answer, "smoothquant", "throughput") < 2.0
    assert code(answer, "fp8-w8a8") == "unsupported-hardware"
    assert gain(answer, "gptq", "throughput") < 1.1


def test_mixtral_at_batch_32_reads_all_experts(answers):
    answer = answers["moe-on-two-h100"]
    assert answer["baseline"]["fits"]
    # 93.4 GB over two devices at 3.35 TB/s.
    assert answer["baseline"]["tpot_ms"] > 93.4e9 / 2 / 3.35e12 * 1000
    assert gain(answer, "awq", "tpot") > 1.4
    assert gain(answer, "fp8-kv", "tpot") < 1.1


def test_a_mac_studio_holds_the_model_but_not_nvidia_units(answers):
    answer = answers["mac-studio"]
    assert answer["baseline"]["fits"]
    # 141 GB at 800 GB/s, and 145 TFLOP at 27 TFLOP/s.
    assert answer["baseline"]["tpot_ms"] > 141.1e9 / 800e9 * 1000
    assert answer["baseline"]["ttft_ms"] > 5000
    assert gain(answer, "gguf-k-quants", "tpot") == pytest.approx(2.7, abs=0.8)
    assert code(answer, "fp8-w8a8") == "unsupported-hardware"


def test_a_cpu_server_is_bound_by_its_memory(answers):
    answer = answers["cpu-server"]
    assert answer["baseline"]["fits"]
    assert answer["baseline"]["tpot_ms"] > 16.06e9 / 461e9 * 1000
    assert 1.3 < gain(answer, "gguf-k-quants", "tpot") < 3.4
    # It is bound by reading weights, so the batch at which 4 bits stop paying is small.
    assert code(answer, "two-four") is not None


def test_an_orin_has_no_host_to_offload_to(answers):
    answer = answers["edge-orin"]
    assert answer["baseline"]["fits"]
    assert answer["baseline"]["tpot_ms"] > 16.06e9 / 204.8e9 * 1000
    assert 1.8 < gain(answer, "gguf-k-quants", "tpot") < 3.4
    assert all("flexgen" not in item["techniques"] for item in answer["recommendations"])


def test_deepseek_v3_uses_the_layer_that_it_ships(answers):
    answer = answers["deepseek-v3-on-8-h200"]
    assert answer["baseline"]["fits"]
    # 64 % of 671 GB over eight devices at 4.8 TB/s, exchanges not counted.
    assert answer["baseline"]["tpot_ms"] > 0.6 * 671e9 / 8 / 4.8e12 * 1000
    assert code(answer, "mtp") is None
    # One token more, accepted in 85 of 100 steps: at most 1.85 tokens per step.
    assert 1.1 < gain(answer, "mtp", "tpot") <= 1.85
    assert gain(answer, "fp8-kv", "tpot") < 1.1
