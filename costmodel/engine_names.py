"""What the engine column of a measured row means: names with versions and back ends, and names that no list holds."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from costmodel.catalogue import Resolved, all_engines, find_engine
from costmodel.errors import UnknownName
from costmodel.specs import Engine

# "vLLM 0.6.3", "TensorRT-LLM v0.9", "sglang==0.5.1.post2", "llama.cpp b4000", "Foo (v1.2)"
VERSION = re.compile(r"[\s\-_@=:(,]+(?:v(?:ersion)?\s*)?(\d+\.\d[\w.+-]*|b\d{3,5})\)?\s*$", re.I)
# back ends and hosts that a name may end with; the device of the row says the same
BACK_END = re.compile(
    r"[\s\-_(,/]+(cuda|rocm|hip|metal|vulkan|sycl|opencl|cpu|gpu|xpu|hpu|npu|backend|engine|server|runtime)\)?\s*$",
    re.I,
)
FEWEST_LETTERS = 4  # of a known name that may stand inside a longer one

# (pattern, engine, the same in an MLPerf submission)
RULES = (
    ("tensorrt|trt|nvidia", "tensorrt-llm", "mlperf-tensorrt"),
    ("vllm|rocm|amd", "vllm", "mlperf-vllm"),
    (r"llama.?cpp|ggml|gguf|\.cpp\b|\.c\b|\.rs\b", "llama.cpp", "llama.cpp"),
    ("exl", "exllamav2", "exllamav2"),
    ("habana|gaudi|hpu", "optimum-habana", "optimum-habana"),
    ("neuron", "neuron", "neuron"),
    ("tpu|jax|xla|maxtext|google", "jetstream", "jetstream"),
    ("pytorch|torch", "hf", "mlperf-pytorch"),
    ("transformers|huggingface|hf|eager|bitsandbytes", "hf", "mlperf-pytorch"),
    ("deepspeed", "deepspeed", "deepspeed"),
    ("openvino|ipex", "openvino", "openvino"),
    ("onnx|directml", "onnxruntime", "onnxruntime"),
    ("mlx|metal", "mlx", "mlx"),
    ("mlc|tvm", "mlc-llm", "mlc-llm"),
    ("server|serve|sglang|tgi|nim", "vllm", "mlperf-vllm"),
)
# what an engine nobody has heard of is most like, by the device that it runs on
GENERIC = {
    "cpu": "llama.cpp", "cpu-arm": "llama.cpp", "phone": "executorch", "apple": "llama.cpp", "apu": "llama.cpp",
    "intel-gpu": "llama.cpp", "nvidia-simt": "llama.cpp", "tpu": "jetstream", "gaudi": "optimum-habana",
    "accelerator": "neuron",
}  # fmt: skip
GENERIC_OTHERWISE = "vllm"
FORMATS = (("gguf", "llama.cpp"), ("exl", "exllamav2"), ("mlx", "mlx"))  # files that one runtime reads


class EngineName(NamedTuple):
    """An engine as a row names it."""

    engine: Engine
    version: str  # as far as it stands in the name
    familiar: bool  # False: no engine of the catalogue is named, `engine` is the nearest kind


@lru_cache(maxsize=1024)
def read_engine_name(text: str, group: str = "", weight_format: str = "") -> EngineName:
    """The engine that `text` names, without version and back end; else the nearest kind.

    What is near is said by words of the name, by the format of the weights, by the device group, in this order.

    >>> read_engine_name("SGLang v0.5.1")[1:]
    ('0.5.1', True)
    >>> read_engine_name("dashinfer", "cpu").engine.slug, read_engine_name("dashinfer", "nvidia-hbm").engine.slug
    ('llama.cpp', 'vllm')
    """
    submission = "mlperf" in text.lower()
    name, version = text.strip(), ""
    while True:
        if found := _known(name):
            return EngineName(found, version, True)
        cut = VERSION.search(name)
        version = cut[1] if cut else version
        cut = cut or BACK_END.search(name)
        if not cut or not cut.start() or submission:
            break
        name = name[: cut.start()]
    if not submission and (found := _inside(name)):
        return EngineName(found, version, True)
    low = text.lower()
    for pattern, slug, submitted in RULES:
        if re.search(pattern, low):
            return EngineName(all_engines()[submitted if submission else slug], version, submission)
    slug = "mlperf-pytorch" if submission else GENERIC.get(group, GENERIC_OTHERWISE)
    slug = next((reader for start, reader in FORMATS if weight_format.lower().startswith(start)), slug)
    return EngineName(all_engines()[slug], version, False)


def _known(text: str) -> Engine | None:
    try:
        return find_engine(text).spec
    except UnknownName:
        return None


def _inside(text: str) -> Engine | None:
    """The engine whose name is the longest among the words of a longer one: `Sarathi on vLLM`, `vllm-fork`."""
    words = re.split(r"[\s\-_/(),:]+", text.lower())
    runs = [
        "-".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + 4, len(words)) + 1)
    ]
    for run in sorted(runs, key=len, reverse=True):
        if len(run) >= FEWEST_LETTERS and (found := _known(run)):
            return found
    return None


def nearest_engine(text: str) -> Resolved[Engine]:
    """As `find_engine`, but never fails: measured rows name engines that no list holds; a note says what was taken.

    >>> nearest_engine("mlperf: TensorRT 10.2.0, CUDA 12.4").slug
    'mlperf-tensorrt'
    """
    engine, _, familiar = read_engine_name(text)
    listed = familiar and not engine.slug.startswith("mlperf-")
    note = f"engine {text!r} is not in the catalogue; priced as {engine.name}"
    return Resolved(text, engine.slug, engine.name, (), engine, () if listed else (note,))
