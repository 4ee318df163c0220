"""Seconds of one operator from its work and the rates of the device (Williams et al. 2009, roofline)."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import maximum, minimum


def combine(compute_s: Any, memory_s: Any, exposed_share: Any) -> Any:
    """Time of an operator that computes and reads at once: the longer, plus a share of the shorter.

    seconds = max(compute, memory) + exposed_share · min(compute, memory)

    exposed_share 0 is perfect overlap (the bare roofline); 1 is none.

    >>> combine(2.0, 1.0, 0.0), combine(2.0, 1.0, 0.5)
    (2.0, 2.5)
    """
    return maximum(compute_s, memory_s) + exposed_share * minimum(compute_s, memory_s)
