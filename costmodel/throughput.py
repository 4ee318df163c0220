"""Many requests at once: interleaved prefills, queueing at a given rate, tokens per second."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import maximum, minimum, where

BUSIEST = 0.99  # utilisation at which a queue is cut off: beyond, it grows without end


def interference_seconds(*, sequences: Any, prefill_s: Any, output_tokens: Any) -> Any:
    """What the other requests' prefills add to each decode step while `sequences` requests are in flight.

    In steady state each of the other B − 1 requests is prefilled once while one request decodes its n tokens:
    added = (B − 1) · prefill / n, where `prefill_s` is what a mixed step does not hide in the shadow of the weights
    it reads anyway (chunked prefill: Agrawal et al. 2023, arXiv:2308.16369).

    >>> interference_seconds(sequences=11, prefill_s=0.1, output_tokens=10)
    0.1
    """
    return maximum(sequences - 1.0, 0.0) * prefill_s / maximum(output_tokens, 1.0)


def sequences_at_rate(*, request_rate: Any, fixed_s: Any, slope_s: Any, most: Any) -> Any:
    """Requests in flight at a given arrival rate: Little's law, B = λ · (fixed + slope · B), solved for B.

    `fixed_s` and `slope_s`: a request's time in the engine is about fixed + slope · B.

    >>> sequences_at_rate(request_rate=2.0, fixed_s=1.0, slope_s=0.25, most=100.0)
    4.0

    Beyond what the slope allows the queue grows without end and the engine is full.

    >>> sequences_at_rate(request_rate=10.0, fixed_s=0.0, slope_s=0.25, most=100.0)
    100.0
    """
    room = 1.0 - request_rate * slope_s
    return where(room > 1e-9, minimum(maximum(request_rate * fixed_s / maximum(room, 1e-9), 1.0), most), most)


def waiting_seconds(*, request_rate: Any, service_s: Any) -> Any:
    """Mean time in the queue of a server with even service times: ρ / (2 (1 − ρ)) · service (M/D/1).

    >>> waiting_seconds(request_rate=0.5, service_s=1.0)
    0.5
    """
    load = minimum(request_rate * service_s, BUSIEST)
    return load / (2.0 * (1.0 - load)) * service_s
