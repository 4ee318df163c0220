"""What a failed connection means: no network, in one line, with what to do next.

A name that is not found, a refused connection, a proxy that does not let us through, a certificate that nobody
vouches for and silence are one thing to the person who waits: the provider cannot be reached from here, whatever
the identifier.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ingest.errors import NoNetwork

HINT = "check the network{proxy}; without one, save the record as a file and run: kb ingest FILE"


def reason(error: BaseException) -> str:
    """Why no connection came about, in a few words; "" where one did, and broke later."""
    import requests

    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not let us through"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted here"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return "no connection within the time limit"
    text = str(error)
    if "NameResolution" in text or "getaddrinfo" in text or "Name or service" in text:
        return "its name is not found"
    if "refused" in text:
        return "the connection is refused"
    if "NewConnectionError" in text or "Failed to establish" in text:
        return "no route to it"
    return ""


def missing(url: str, why: str) -> NoNetwork:
    """The error for a host that cannot be reached."""
    host = urlsplit(url).netloc
    if "proxy" in why:
        proxy = " and the proxy in HTTPS_PROXY"
    elif "certificate" in why:
        proxy = "; behind a proxy with its own certificate set REQUESTS_CA_BUNDLE"
    else:
        proxy = " (behind a proxy, set HTTPS_PROXY)"
    return NoNetwork(f"no network: cannot reach {host} ({why})", hint=HINT.format(proxy=proxy))
