"""Which engine runs on which device: what answers a question, what rules a technique out, what people serve with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from costmodel.catalogue import Resolved, all_engines
from costmodel.specs import Engine, Hardware
from recommender import text

# Engines with a path for processors; the vendors in an engine's row are those of its accelerators.
CPU_ENGINES = frozenset(
    {
        "llama.cpp", "ik_llama.cpp", "bitnet.cpp", "rwkv.cpp", "intel-neural-speed", "executorch", "openvino", "ipex-llm",
        "onnxruntime", "ctranslate2", "hf", "accelerate", "mlc-llm", "plain", "roofline", "exo",
    }
)  # fmt: skip
# Servers whose processor back ends do not have their quantized kernels, by their installation pages:
# docs.vllm.ai/en/latest/getting_started/installation/cpu, docs.sglang.ai (CPU servers), TGI (Intel CPU image).
CPU_SERVERS = frozenset({"vllm", "sglang", "tgi"})
# Model engines of this tool, which stand for any software.
OPEN_ENGINES = ("plain", "roofline")
LOCAL_CLASSES = ("cpu", "apple", "edge", "apu")
NAMED = 6


@lru_cache(maxsize=256)
def runnable(vendor: str, device_class: str) -> frozenset[str]:
    """Engines that run on a kind of device, with the kernels that techniques bring."""
    return frozenset(
        slug
        for slug, engine in all_engines().items()
        if (
            slug in CPU_ENGINES
            if device_class == "cpu"
            else not engine.device_vendors or vendor in engine.device_vendors
        )
    )


def names(slugs: Sequence[str], last: str = "and") -> str:
    """Engines as a reader knows them: vLLM, SGLang and TensorRT-LLM."""
    engines = all_engines()
    return text.listed([text.engine(engines[slug].name) if slug in engines else slug for slug in slugs], last)


def runs_on(engine: Engine, hardware: Hardware) -> bool:
    """Whether the engine runs on the device at all; a user's own device may leave its vendor open ("user")."""
    if hardware.device_class == "cpu" and engine.slug in CPU_SERVERS:
        return True
    # A user's own engine or device that is in no list is believed.
    return (
        hardware.vendor.lower() == "user"
        or engine.slug not in all_engines()
        or engine.slug in runnable(hardware.vendor, hardware.device_class)
    )


def able(hardware: Hardware) -> frozenset[str] | None:
    """Engines that run on the device; None for a user's own, of which nothing is known."""
    if hardware.vendor.lower() == "user":
        return None
    return runnable(hardware.vendor, hardware.device_class)


def usual_engine(hardware: Hardware, engines: Mapping[str, Engine]) -> Engine:
    """What people serve with on such a device."""
    if hardware.device_class in LOCAL_CLASSES:
        return engines["llama.cpp"]
    vllm = engines["vllm"]
    return vllm if hardware.vendor in vllm.device_vendors else engines["plain"]


def suited(asked: Resolved[Engine], hardware: Hardware) -> Resolved[Engine]:
    """The engine asked for, or the usual one of a device on which it does not run, with a note that says so."""
    if runs_on(asked.spec, hardware):
        return asked
    usual = usual_engine(hardware, all_engines())
    others = [slug for slug in alternatives(hardware) if slug != usual.slug]
    note = (
        f"{text.engine(asked.name)} does not run on {text.device(hardware.name)}; answered for {text.engine(usual.name)}, "
        f"which does, as do {', '.join(others)}"
    )
    return Resolved(asked.asked, usual.slug, usual.name, tuple(others), usual, (note,))


def alternatives(hardware: Hardware) -> list[str]:
    """Engines for a device: the usual one, those whose version the catalogue follows, those made for it, the rest."""
    engines = all_engines()
    able = [slug for slug in runnable(hardware.vendor, hardware.device_class) if slug not in OPEN_ENGINES]
    usual = usual_engine(hardware, engines).slug
    able.sort(
        key=lambda slug: (
            slug != usual,
            not engines[slug].version,
            len(engines[slug].device_vendors) != 1,
            slug,
        )
    )
    return [*able[:NAMED], "plain"]
