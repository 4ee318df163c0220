"""The whole recommender on random scenarios, its promises, and the acceptance points of the project."""

from __future__ import annotations

import json
import random

import pytest

from costmodel.catalogue import all_engines, all_hardware, all_models
from recommender import soundness
from recommender.assess import assess
from recommender.curves import advised_curves
from recommender.engines import runs_on
from recommender.errors import InvalidQuestion
from recommender.knowledge import Knowledge, load_knowledge
from recommender.pricing import price
from recommender.question import Question
from recommender.service import estimate, recommend, recommend_with, sweep, technique_curve
from recommender.situation import resolve
from taxonomy.load import load_relations, load_techniques


@pytest.fixture(scope="module")
def knowledge():
    return Knowledge(techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations()))


def ask(knowledge, **fields):
    return recommend_with(knowledge, Question.from_mapping({"hardware": "rtx3090", "model": "70b", **fields}))


def entry(answer, slug):
    return next((r for r in answer.recommendations if r.kind == "technique" and slug in r.members), None)


def rejection(answer, slug):
    return next((r for r in answer.rejected if r.technique == slug), None)


@pytest.mark.parametrize("seed", range(24))
def test_random_scenarios_are_sound(seed, knowledge):
    draw = random.Random(seed)
    scenario = soundness.random_scenario(draw, sorted(all_hardware()), sorted(all_models()))
    question = Question.from_mapping(scenario)
    answer = recommend_with(knowledge, question)
    assert soundness.faults(answer, knowledge) == [], scenario
    assert soundness.bound_faults(assess(resolve(question, knowledge), knowledge)) == [], scenario
    json.dumps(answer.as_dict(), allow_nan=False)


@pytest.mark.parametrize("seed", range(6))
def test_pricing_together_equals_pricing_alone(seed, knowledge):
    """What one candidate sets may not change what the engine does for the others (llama.cpp's own batches of 512)."""
    draw = random.Random(seed)
    scenario = soundness.random_scenario(draw, sorted(all_hardware()), sorted(all_models()))
    device = all_hardware()[scenario["hardware"]]
    for name in ("llama.cpp", draw.choice(sorted(all_engines()))):
        if runs_on(all_engines()[name], device):
            found = assess(resolve(Question.from_mapping({**scenario, "engine": name}), knowledge), knowledge)
            for place in range(0, len(found.candidates), 9):
                alone = price(found.situation, [found.candidates[place]])
                for metric, values in found.priced.metrics.items():
                    assert alone.metrics[metric][0] == pytest.approx(values[place], rel=1e-9, nan_ok=True), (
                        name, metric, found.candidates[place],
                    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_curves_pass_through_the_answer(seed, knowledge):
    """At the question's own batch the curve shows the answer's gain, and both name the same break-even."""
    draw = random.Random(1000 + seed)
    scenario = soundness.random_scenario(draw, sorted(all_hardware()), sorted(all_models()))
    question = Question.from_mapping(scenario)
    answer = recommend_with(knowledge, question)
    for item in answer.recommendations[:4]:
        curves = advised_curves(knowledge, question, item.techniques, item.deployment)
        here = next(point["gain"] for point in curves["batch"] if point["x"] == question.batch)
        assert here == pytest.approx(item.gain[curves["metric"]], rel=1e-6)
        assert {name: item.break_even.get(name) for name in curves["break_even"]} == curves["break_even"]


def test_the_same_question_gives_the_same_answer(knowledge):
    one, two = ask(knowledge).as_dict(), ask(knowledge).as_dict()
    assert one == two


# ---------------------------------------------------------------- Llama-2-70B on one RTX 3090


def test_70b_on_one_3090_says_what_it_lacks(knowledge):
    found = ask(knowledge).feasibility
    # weights 137.95e9 + 1536 tokens x 327,680 bytes of cache, buffers and driver beside them; the card has 24 GiB
    assert found["available_bytes"] == pytest.approx(24 * 2**30, rel=0.05)
    assert found["lacking_bytes"] == pytest.approx(137.95e9 + 1536 * 327_680 - 24 * 2**30, rel=0.03)
    assert found["min_devices"] >= 6


def test_70b_on_one_3090_puts_two_bits_first(knowledge):
    answer = ask(knowledge)
    first = answer.recommendations[:4]
    assert all(item.makes_it_fit for item in first)
    # AQLM's one large codebook decodes more slowly than QuIP#'s, so they stand on lines of their own
    assert {"aqlm", "quip-sharp"} <= {slug for item in first for slug in item.members}
    assert entry(answer, "aqlm").estimate["fits"] and any(
        "quality" in line for line in entry(answer, "aqlm").caveats
    )
    assert answer.feasibility["changes"][0]["change"] == "2-bit weights"


def test_70b_four_bits_fit_two_cards_not_one(knowledge):
    answer = ask(knowledge)
    four = next(row for row in answer.feasibility["formats"] if row["weights"] == "4-bit weights")
    assert not four["fits"] and four["min_devices"] == 2 and four["lacking_bytes"] > 10e9
    assert rejection(answer, "awq").code == "does-not-fit"
    assert any(change["change"] == "4-bit weights, 2 x RTX 3090" for change in answer.feasibility["changes"])


def test_70b_offloading_is_priced_and_no_win(knowledge):
    answer = ask(knowledge)
    item = entry(answer, "flexgen")
    # more than 110 GB cross a link of 31.5 GB/s for every token: beyond 3.5 s whatever is hidden
    assert item.estimate["tpot_ms"] > 3500
    assert item.gain["latency"] < 1 and any("Not a speed-up" in line for line in item.caveats)
    assert item.rank > entry(answer, "aqlm").rank
    last = [change for change in answer.feasibility["changes"] if "host memory" in change["change"]]
    assert last and answer.feasibility["changes"].index(last[0]) > 0


def test_what_goes_to_the_host_is_told_in_bytes(knowledge):
    item = entry(ask(knowledge, lossless=True), "flexgen")
    on_device = item.estimate["memory_bytes"]["weights"]
    assert item.estimate["host_bytes"] + on_device == pytest.approx(137.95e9, rel=1e-3)
    assert "on the host" in item.why
    assert any(line.startswith("Host memory of 11") for line in item.caveats)


@pytest.mark.parametrize("slug", ["flashattention", "paged-attention"])
def test_70b_what_frees_no_memory_does_not_fit(slug, knowledge):
    assert rejection(ask(knowledge), slug).code == "does-not-fit"


def test_every_recommendation_names_papers_that_exist(reader):
    answer = recommend(reader, {"hardware": "rtx3090", "model": "70b"})
    known = {row["slug"] for row in reader.rows("SELECT slug FROM work")}
    for item in answer.recommendations:
        assert item.papers, item.techniques
        assert {paper["id"] for paper in item.papers} <= known


# ---------------------------------------------------------------- Llama-3.1-8B on one A100 and one H100


def test_four_bits_near_the_top_for_decode_without_prefill_gain(knowledge):
    answer = ask(knowledge, hardware="a100-80gb", model="llama-3.1-8b", objective="tpot")
    item = entry(answer, "awq")
    assert item.rank <= 8 and item.gain["tpot"] > 1.5 and item.gain["ttft"] <= 1.0


def test_four_bits_at_batch_256_are_refused_for_compute(knowledge):
    answer = ask(knowledge, hardware="a100-80gb", model="llama-3.1-8b", batch=256)
    refusal = rejection(answer, "awq")
    assert refusal.code == "no-gain" and "compute-bound" in refusal.reason


def test_fp8_products_need_hopper_and_fp8_cache_does_not(knowledge):
    a100 = ask(knowledge, hardware="a100-80gb", model="llama-3.1-8b", batch=64, input_tokens=4096)
    h100 = ask(knowledge, hardware="h100", model="llama-3.1-8b", batch=64, input_tokens=4096)
    assert rejection(a100, "fp8-w8a8").code == "unsupported-hardware"
    assert entry(h100, "fp8-w8a8")
    for answer in (a100, h100):
        refusal = rejection(answer, "fp8-kv")
        assert refusal is None or refusal.code != "unsupported-hardware"


# ---------------------------------------------------------------- constraints


def test_lossless_keeps_only_lossless(knowledge):
    answer = ask(knowledge, hardware="a100", model="8b", lossless=True)
    assert answer.recommendations and all(item.quality["lossless"] for item in answer.recommendations)
    assert rejection(answer, "awq").code == "lossy"


@pytest.mark.parametrize(
    ("budget", "allowed"), [("none", {"none"}), ("calibration", {"none", "calibration"})]
)
def test_training_budget(budget, allowed, knowledge):
    answer = ask(knowledge, hardware="a100", model="mistral-7b", max_training=budget)
    assert {item.training for item in answer.recommendations} <= allowed
    assert rejection(answer, "eagle-3").code == "needs-training"


def test_published_heads_need_no_training(knowledge):
    answer = ask(knowledge, hardware="a100", model="llama-3.1-8b", max_training="none", engine="vllm")
    item = entry(answer, "eagle-3")
    assert item.training == "none"
    assert any("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B" in line for line in item.caveats)
    flags = [
        each["how"] for each in item.engines if each["name"] == "vllm" and each["technique"] == "eagle-3"
    ]
    assert '"model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"' in flags[0]


def test_flags_newer_than_the_measured_release_are_said(knowledge):
    answer = ask(knowledge, hardware="a100", model="llama-2-13b", engine="vllm")
    caveats = entry(answer, "spec-decode").caveats
    assert any(line.startswith("Needs vLLM 0.10.1") and "those of vLLM 0.6" in line for line in caveats)


def test_two_names_of_one_practice_share_a_line(knowledge):
    answer = ask(knowledge, hardware="a100", model="llama-2-13b", engine="vllm")
    item = entry(answer, "spec-sampling")
    assert item is entry(answer, "spec-decode") and item.members[0] == "spec-decode"


# ---------------------------------------------------------------- formats in which publishers ship the weights


def test_the_published_format_is_lossless_and_comes_first(knowledge):
    answer = ask(
        knowledge, hardware="h200", devices=8, model="deepseek-v3", engine="sglang", batch=64, lossless=True
    )
    first = answer.recommendations[0]
    assert "fp8-w8a8" in first.techniques and first.quality["lossless"] and first.training == "none"
    assert answer.feasibility["changes"][0]["change"] == "the published fp8-block weights"
    assert "--weights fp8-block" in answer.verdict["text"]
    assert rejection(answer, "awq").code == "lossy"


def test_other_formats_of_the_same_width_are_not_the_published_one(knowledge):
    answer = ask(knowledge, hardware="h100", model="gpt-oss-120b", engine="vllm", lossless=True)
    assert answer.recommendations[0].techniques == ("mxfp4-weights",)
    for slug in ("awq", "nvfp4", "int4-weight-only"):
        assert rejection(answer, slug).code in ("lossy", "unsupported-hardware"), slug


# ---------------------------------------------------------------- what makes a model fit, smallest change first


@pytest.mark.parametrize(
    ("engine", "slug", "width"),
    [("exllamav2", "exl2", "2.5bpw"), ("llama.cpp", "gguf-k-quants", "gguf-iq2_m")],
)
def test_formats_of_several_widths_take_the_widest_that_fits(engine, slug, width, knowledge):
    answer = ask(knowledge, hardware="rtx-4090", model="llama-2-70b", engine=engine)
    first = answer.recommendations[0]
    assert first.techniques == (slug,) and first.deployment["weight_format"] == width
    assert any("evaluate before use" in line for line in first.caveats)
    usual = entry(ask(knowledge, hardware="rtx-4090", model="llama-2-7b", engine=engine), slug)
    assert usual.deployment["weight_format"] in ("4.0bpw", "gguf-q4_k_m")


def test_a_small_overflow_is_met_by_small_changes(knowledge):
    answer = ask(
        knowledge, hardware="l40s", devices=4, model="llama-2-70b", engine="vllm", batch=48, input_tokens=2048
    )
    ways = [way["change"] for way in answer.feasibility["changes"]]
    assert answer.feasibility["lacking_bytes"] < 0.1 * answer.feasibility["needed_bytes"]
    assert set(ways[:3]) == {
        "8-bit KV cache",
        "batch 32 instead of 48",
        "prompts of 1,200 tokens instead of 2,048",
    }
    assert "host memory" in ways[-1]
    assert answer.recommendations[0].techniques == ("fp8-kv",)


def test_lossless_ways_only_where_lossless_was_asked(knowledge):
    answer = ask(
        knowledge, hardware="l40s", devices=4, model="llama-3.1-70b", engine="vllm", batch=64, lossless=True
    )
    ways = [way["change"] for way in answer.feasibility["changes"]]
    assert ways[0] == "batch 48 instead of 64" and "KV cache" not in answer.verdict["text"]
    assert not any("-bit" in way for way in ways)


def test_options_that_make_it_fit_are_ordered_by_what_they_change(knowledge):
    answer = ask(knowledge, hardware="rtx3090", model="llama-2-70b")
    singles = [item for item in answer.recommendations if item.kind == "technique"]
    assert all(item.makes_it_fit for item in singles)
    research = [
        all(e["name"] == "research code" for e in item.engines if e["technique"] == item.techniques[0])
        for item in singles
    ]
    quick = [research[i] for i, item in enumerate(singles) if item.gain["latency"] > 0.7]
    assert quick == sorted(quick), "what an engine ships comes before research code"
    assert singles[-1].gain["latency"] < 0.1, "weights in host memory come last"


def test_what_the_engine_does_is_in_use(knowledge):
    answer = ask(knowledge, hardware="a100", model="8b", engine="vllm")
    for slug in ("flashattention", "paged-attention", "continuous-batching"):
        assert rejection(answer, slug).code == "already-in-use", slug


def test_using_changes_the_baseline(knowledge):
    plain = ask(knowledge, hardware="a100", model="8b")
    used = ask(knowledge, hardware="a100", model="8b", using="awq")
    assert rejection(used, "awq").code == "already-in-use"
    assert used.baseline["memory_bytes"]["weights"] < 0.5 * plain.baseline["memory_bytes"]["weights"]


def test_filters_leave_out_and_say_so(knowledge):
    answer = ask(knowledge, hardware="a100", model="8b", bottleneck="sequential-decoding")
    assert all(
        "sequential-decoding" in item.bottlenecks
        for item in answer.recommendations
        if item.kind == "technique"
    )
    assert rejection(answer, "awq").code == "filtered-out"
    assert soundness.faults(answer, knowledge) == []


def test_a_level_nobody_has_is_refused(knowledge):
    with pytest.raises(InvalidQuestion) as caught:
        ask(knowledge, hardware="a100", model="8b", level="model/compresion")
    assert caught.value.field == "level" and "model/compression" in caught.value.hint
    kept = ask(knowledge, hardware="a100", model="8b", level="zhou:model/compression")
    assert kept.recommendations and rejection(kept, "spec-decode").code == "filtered-out"


def test_a_plans_steps_multiply_to_its_gain(knowledge):
    answer = ask(knowledge, hardware="a100", model="8b")
    plan = next(item for item in answer.recommendations if item.kind == "plan")
    product = 1.0
    for step in plan.steps:
        product *= step["marginal_gain"]["latency"]
    assert product == pytest.approx(plan.gain["latency"], rel=1e-6)
    budgets = [answer.plans_by_training[name] for name in ("none", "calibration", "finetune")]
    assert all(budgets)


# ---------------------------------------------------------------- the other entries


def test_estimate_and_sweep_agree():
    rows = list(sweep({"hardware": "a100", "model": "8b", "batch": [1, 8], "weights": ["fp16", "int4"]}))
    assert [(row["batch"], row["weight_format"]) for row in rows] == [
        (1, "fp16"), (1, "int4"), (8, "fp16"), (8, "int4"),
    ]  # fmt: skip
    for row in rows:
        body = estimate(
            {"hardware": "a100", "model": "8b", "batch": row["batch"], "weights": row["weight_format"]}
        )
        assert row["tpot_ms"] == pytest.approx(body["tpot_ms"], rel=1e-12)
        assert row["total_bytes"] == pytest.approx(body["memory_bytes"]["total"], rel=1e-12)


def test_curve_falls_with_batch(reader):
    found = technique_curve(reader, "awq", {"hardware": "a100", "model": "llama-2-7b", "objective": "tpot"})
    gains = [point["gain"] for point in found["batch"]]
    assert gains[0] > 1.5 and gains[-1] < 1.1 and found["break_even"]["batch"]


def test_snapshot_is_reused_until_the_data_change(reader):
    assert load_knowledge(reader) is load_knowledge(reader)


def test_the_path_imports_nothing_heavy(database):
    """`kb recommend` from a cold shell may not pay for SQLModel, pydantic, networkx or scikit-learn."""
    import subprocess
    import sys

    code = (
        "import sys; from kb.db import open_reader; from recommender.service import recommend; "
        f"reader = open_reader({database!r}); recommend(reader, {{'hardware': 'rtx3090', 'model': '70b'}}); "
        "heavy = {'sqlmodel', 'sqlalchemy', 'pydantic', 'networkx', 'sklearn', 'fastapi', 'requests'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_plan_steps_are_shipped_by_the_engine_asked_for(reader):
    """Short of memory by 4 %, self-speculation beside offloading would fit; vLLM does not have it."""
    from recommender.knowledge import load_knowledge
    from recommender.service import recommend

    scenario = {"hardware": "l40s", "devices": 4, "model": "llama-3.1-70b", "engine": "vllm", "batch": 64}
    answer = recommend(reader, {**scenario, "objective": "throughput", "lossless": True}).as_dict()
    steps = {
        slug for item in answer["recommendations"] if item["kind"] == "plan" for slug in item["techniques"]
    }
    knowledge = load_knowledge(reader)
    assert "vllm" not in knowledge.shipped_by("draft-verify")
    assert all("vllm" in knowledge.shipped_by(slug) for slug in steps), steps


def test_the_front_has_no_plan_that_no_engine_could_run(knowledge):
    """LMDeploy's engine with QServe's kernels: each exists, the two together do not."""
    answer = ask(knowledge, hardware="h100-sxm", model="llama-3.1-8b", batch=32, input_tokens=2048)
    fronts = [set(plan["techniques"]) for plan in answer.pareto]
    assert {"qserve"} < set().union(*fronts), "the front is not empty, and QServe is on it"
    assert not set(knowledge.shipped_by("qserve")) & set(knowledge.shipped_by("lmdeploy"))
    assert not any({"qserve", "lmdeploy"} <= front for front in fronts)
    assert soundness.faults(answer, knowledge) == []


def test_drafts_copied_from_the_text_are_no_step_without_the_users_word(reader):
    from recommender.assess import assess
    from recommender.knowledge import load_knowledge
    from recommender.plans import parts_of

    knowledge = load_knowledge(reader)

    def steps(**more):
        given = {"hardware": "h100", "model": "llama-3.1-8b", "engine": "vllm", **more}
        situation = resolve(Question.from_mapping(given), knowledge)
        return {part.slug for part in parts_of(assess(situation, knowledge))}

    assert "prompt-lookup" not in steps()
    assert "prompt-lookup" in steps(acceptance_rate=0.9)


def test_a_brief_answer_is_told_in_the_same_words(reader):
    """It leaves out predictions beside figures; what contradicts the first entry stays."""
    contradicted, predicted = 0, [0, 0]
    for model in ("13b", "70b"):
        asked = {"hardware": "a100", "model": model, "objective": "throughput", "batch": 64, "stack": False}
        full, brief = recommend(reader, asked), recommend(reader, asked, brief=True)
        assert brief.verdict == full.verdict and brief.rejected == full.rejected
        assert [item.name for item in brief.recommendations] == [item.name for item in full.recommendations]
        assert brief.recommendations[0].disagreement == full.recommendations[0].disagreement
        contradicted += full.recommendations[0].disagreement is not None
        for number, answer in enumerate((full, brief)):
            figures = [each for item in answer.recommendations for each in item.evidence]
            predicted[number] += sum(each["predicted"] is not None for each in figures)
    assert contradicted and predicted[1] < predicted[0]
