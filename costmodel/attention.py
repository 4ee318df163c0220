"""Attention: cached tokens a query sees, score multiplications, and the traffic of each kernel."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import maximum, minimum


def causal_pairs(*, new_tokens: Any, past_tokens: Any, window_tokens: Any) -> Any:
    """Pairs of query and context tokens that causal attention over `new_tokens` computes, one sequence.

    pairs = n·p + n²/2, and at most n·w under a sliding window of w tokens; the masked half is not computed.

    >>> causal_pairs(new_tokens=4.0, past_tokens=0.0, window_tokens=1e9)
    8.0
    """
    free = new_tokens * past_tokens + 0.5 * new_tokens * new_tokens
    return minimum(free, new_tokens * window_tokens)


def mean_context(*, first_tokens: Any, new_tokens: Any) -> Any:
    """Mean number of cached tokens while `new_tokens` are decoded one by one after `first_tokens`."""
    return first_tokens + 0.5 * maximum(new_tokens - 1.0, 0.0)


def score_matrix_bytes(
    *, pairs: Any, score_heads: Any, bytes_per_element: float = 2.0, passes: float = 5.0
) -> Any:
    """Traffic of the S×S scores that an unfused attention writes and reads back.

    Scale and mask, softmax and the product with the values each read and write the matrix; FlashAttention keeps
    it on chip (Dao et al. 2022, arXiv:2205.14135). The causal half is computed in full: 2 · pairs.

    >>> score_matrix_bytes(pairs=8.0, score_heads=1.0, passes=1.0)
    32.0
    """
    return 2.0 * pairs * score_heads * bytes_per_element * passes
