"""Speculative decoding: how many tokens a step yields, and what drafting costs."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import power, where


def expected_tokens(*, acceptance: Any, drafted: Any) -> Any:
    """Mean tokens per verification step when each drafted token is accepted with the same probability.

    E = (1 − a^(k+1)) / (1 − a)      (Leviathan et al. 2023, arXiv:2211.17192, equation 1)

    >>> round(expected_tokens(acceptance=0.7, drafted=4), 4)
    2.7731
    """
    sure = acceptance >= 1.0
    safe = where(sure, 0.0, acceptance)
    return where(sure, drafted + 1.0, (1.0 - power(safe, drafted + 1.0)) / (1.0 - safe))


def draft_seconds(
    *,
    weight_share: Any,
    passes: Any,
    target_step_s: Any,
    overhead_s: Any,
    layer_share: Any = 0.0,
    issue_s: Any = 0.0,
) -> Any:
    """Time of the drafting of one step.

    A pass of the draft costs its share of the device's time in the target's step and, of `issue_s`, the part that
    goes into issuing kernels, the share of its layers. A head or a part of the target states its layers
    (`layer_share`); the layers of a model of its own grow with about the square root of its weights.

    >>> round(draft_seconds(weight_share=0.04, passes=4.0, target_step_s=1.0, overhead_s=0.0, issue_s=0.5), 6)
    0.48
    >>> head = {"weight_share": 0.05, "layer_share": 1 / 32, "target_step_s": 1.0, "issue_s": 0.6}
    >>> round(draft_seconds(passes=2.0, overhead_s=0.0, **head), 6)
    0.0775
    """
    layers = where(
        layer_share > 0.0, layer_share, power(weight_share, 0.5) * where(weight_share > 0.0, 1.0, 0.0)
    )
    return passes * (weight_share * (target_step_s - issue_s) + layers * issue_s) + overhead_s
