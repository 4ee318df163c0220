"""Mixture of experts: how many experts one pass touches."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import power


def touched_experts(*, experts: Any, active_experts: Any, tokens: Any) -> Any:
    """Expected number of distinct experts that `tokens` tokens reach in one layer, routing even.

    touched = N · (1 − ((N − k) / N) ** tokens)      (N experts, k chosen per token)

    Measured on DeepSeek-V3 (256 experts, 8 chosen): 164 at 32 tokens, 226 at 64 (TileOPs, PR 2155).

    >>> round(touched_experts(experts=8, active_experts=2, tokens=3), 3)
    4.625
    """
    return experts * (1.0 - power((experts - active_experts) / experts, tokens))
