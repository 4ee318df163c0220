"""One polite HTTP session for all providers: paced, cached, conditional, patient, bounded.

A request is sent no sooner than the provider's pace or its rate-limit headers allow. 429 and server errors are
tried again after Retry-After, or after an exponential wait with jitter. Answers are kept in the user's cache folder
and revalidated with ETag or Last-Modified. Keys come from the environment and never leave the provider's host.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from ingest import network
from ingest.errors import FetchError, RecordMissing
from ingest.http_cache import Cache, Cached

MAX_TRIES = 5
MAX_WAIT_S = 120.0
FIRST_WAIT_S = 1.0
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
MAX_ANSWER_S = 300.0  # a server that drips bytes is given up after this
MAX_ANSWER_BYTES = 64 * 2**20
MAX_REDIRECTS = 5
CHUNK_BYTES = 64 * 1024
AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Provider:
    """Where an API is and how often it may be asked; addresses and keys can be set in the environment."""

    name: str
    base_url: str
    pace_s: float  # least time between two requests, until the headers say otherwise
    key_variable: str = ""
    key_header: str = ""
    key_parameter: str = ""
    mail_parameter: str = ""

    @property
    def url_variable(self) -> str:
        return f"KB_{self.name.upper()}_URL"


PROVIDERS = {
    # https://info.arxiv.org/help/api/tou.html: one request every three seconds
    "arxiv": Provider("arxiv", "https://export.arxiv.org", 3.0),
    # https://api.crossref.org/swagger-ui: the polite pool wants a mail address
    "crossref": Provider("crossref", "https://api.crossref.org", 0.1, mail_parameter="mailto"),
    # https://docs.openalex.org: ten requests a second
    "openalex": Provider(
        "openalex", "https://api.openalex.org", 0.1,
        key_variable="OPENALEX_API_KEY", key_parameter="api_key", mail_parameter="mailto",
    ),
    # https://www.semanticscholar.org/product/api: one request a second
    "s2": Provider(
        "s2", "https://api.semanticscholar.org", 1.0, key_variable="S2_API_KEY", key_header="x-api-key"
    ),
}  # fmt: skip


class Http:
    """Asks providers. Everything that touches the outside (sleep, clock, environment, cache) can be given."""

    def __init__(
        self,
        *,
        cache: Cache | None = None,
        environ: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        note: Callable[[str], None] = lambda _text: None,
        jitter: Callable[[], float] = random.random,
        max_bytes: int = MAX_ANSWER_BYTES,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        import requests

        self.session = requests.Session()
        self.environ = os.environ if environ is None else environ
        self.cache = cache
        self.sleep = sleep
        self.clock = clock
        self.note = note
        self.jitter = jitter
        self.max_bytes = max_bytes
        self.read_timeout_s = read_timeout_s
        self.next_request: dict[str, float] = {}  # host → earliest time on the clock
        self.pace_s: dict[str, float] = {}
        mail = self.environ.get("KB_MAILTO", "")
        self.session.headers["User-Agent"] = "kb-inference/0.1" + (f" (mailto:{mail})" if mail else "")

    def get_json(
        self, provider: str, path: str, parameters: Mapping[str, Any] | None = None, *, fresh: bool = False
    ) -> Any:
        """GET, decoded. An answer that is no JSON is asked for once more, past the cache."""
        for attempt in (0, 1):
            body = self.get(provider, path, parameters, fresh=fresh or attempt > 0)
            try:
                return json.loads(body)
            except ValueError:
                continue
        raise FetchError(
            f"{provider} answered {path} with something that is not JSON: {body[:60]!r}",
            hint="the service may be down for maintenance; try again later",
        )

    def get_text(
        self, provider: str, path: str, parameters: Mapping[str, Any] | None = None, *, fresh: bool = False
    ) -> str:
        return self.get(provider, path, parameters, fresh=fresh).decode("utf-8", "replace")

    def post_json(self, provider: str, path: str, parameters: Mapping[str, Any], body: Any) -> Any:
        """POST for batch endpoints; these only read, so trying again is safe. Not cached."""
        url = self.url(provider, path, parameters)
        answer, _headers = self.patient(provider, "POST", url, {}, json.dumps(body).encode())
        try:
            return json.loads(answer)
        except ValueError as error:
            raise FetchError(f"{provider} answered {path} with something that is not JSON") from error

    def get(
        self, provider: str, path: str, parameters: Mapping[str, Any] | None = None, *, fresh: bool = False
    ) -> bytes:
        """GET through the cache; `fresh` asks the provider whatever the cache holds."""
        url = self.url(provider, path, parameters or {})
        kept = self.cache.load(url) if self.cache else None
        if kept and not fresh and kept.is_fresh(time.time()):
            return kept.body
        conditions = kept.conditions() if kept and not fresh else {}
        body, headers = self.patient(provider, "GET", url, conditions, None)
        if body is None:  # 304: what we have is still right
            assert kept is not None
            kept = kept.renewed(headers, time.time())
        else:
            kept = Cached.from_answer(url, body, headers, time.time())
        if self.cache and kept.may_be_stored:
            self.cache.store(kept)
        return kept.body

    def url(self, provider: str, path: str, parameters: Mapping[str, Any]) -> str:
        """The address without any key: it is also the cache's key and what messages show."""
        chosen = PROVIDERS[provider]
        base = (self.environ.get(chosen.url_variable) or chosen.base_url).rstrip("/")
        query = urlencode({key: value for key, value in parameters.items() if value is not None})
        return f"{base}{path}" + (f"?{query}" if query else "")

    def patient(
        self, provider: str, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[Any, Mapping[str, str]]:
        """One request with its repetitions; body None stands for "not modified"."""
        import requests

        chosen = PROVIDERS[provider]
        trouble, heard = "", False
        for attempt in range(MAX_TRIES):
            self.wait_for_turn(chosen, url)
            wait: float | None = None
            try:
                status, answer_headers, answer = self.send(chosen, method, url, headers, body)
            except requests.exceptions.ConnectionError as error:
                why = network.reason(error)
                if why and attempt >= 1:
                    raise network.missing(url, why) from error
                trouble = why or "the connection broke"
            except requests.exceptions.Timeout:
                trouble = f"no answer within {self.read_timeout_s:g} s"
            except requests.exceptions.ChunkedEncodingError:
                trouble = "the answer was cut off"
            except requests.exceptions.RequestException as error:
                raise FetchError(f"{provider} cannot be asked ({type(error).__name__}: {error})") from error
            else:
                heard = True
                self.read_limits(chosen, url, answer_headers)
                if status in (200, 203):
                    return answer, answer_headers
                if status == 304 and headers:
                    return None, answer_headers
                if status not in AGAIN:
                    raise self.refusal(chosen, status, url, answer)
                trouble = f"status {status}"
                wait = retry_after(answer_headers.get("Retry-After"), time.time())
                if wait is not None and wait > MAX_WAIT_S:
                    raise FetchError(
                        f"{provider} asks to wait {wait:.0f} s ({trouble})",
                        hint=f"try again then{self.key_hint(chosen)}",
                    )
            if attempt + 1 < MAX_TRIES:
                pause = wait if wait is not None else min(MAX_WAIT_S, FIRST_WAIT_S * 2**attempt)
                # Clients that failed together must not come back together.
                pause += self.jitter() * (0.1 * pause + 0.1 if wait is not None else pause)
                self.note(f"{provider}: {trouble}; trying again in {pause:.1f} s")
                self.sleep(pause)
        if not heard:
            raise network.missing(url, f"{trouble}, {MAX_TRIES} times")
        raise FetchError(
            f"{provider} did not answer after {MAX_TRIES} tries ({trouble})",
            hint=f"wait a few minutes and try again{self.key_hint(chosen)}",
        )

    def send(
        self, provider: Provider, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One request, redirects followed; the key goes to the provider's own host only."""
        home = urlsplit(url)
        target = url
        for _hop in range(MAX_REDIRECTS + 1):
            there = urlsplit(target)
            at_home = there.netloc == home.netloc and there.scheme in (home.scheme, "https")
            sent = dict(headers)
            if body is not None:
                sent["Content-Type"] = "application/json"
            address = self.with_key(provider, target, sent) if at_home else target
            status, answer_headers, answer = self.exchange(method, address, sent, body)
            location = answer_headers.get("Location")
            if status not in (301, 302, 303, 307, 308) or not location:
                return status, answer_headers, answer
            target = urljoin(target, location)
            if urlsplit(target).scheme not in ("http", "https"):
                break
        raise FetchError(f"{provider.name} redirects too often or to nowhere from {url}")

    def exchange(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Sends once and reads the whole body, within the limits of size and time."""
        hostname = urlsplit(url).hostname or ""
        # A proxy cannot reach our loopback.
        proxies = {"http": "", "https": ""} if hostname in ("127.0.0.1", "localhost", "::1") else None
        begun = self.clock()
        with self.session.request(
            method, url, headers=headers, data=body, stream=True, allow_redirects=False, proxies=proxies,
            timeout=(CONNECT_TIMEOUT_S, self.read_timeout_s),
        ) as answer:  # fmt: skip
            chunks: list[bytes] = []
            size = 0
            for chunk in answer.iter_content(CHUNK_BYTES):
                size += len(chunk)
                if size > self.max_bytes:
                    raise FetchError(
                        f"{hostname} sent more than {self.max_bytes / 2**20:g} MiB for one request",
                        hint="ask for fewer records at once",
                    )
                if self.clock() - begun > MAX_ANSWER_S:
                    raise FetchError(f"{hostname} did not finish its answer within {MAX_ANSWER_S:g} s")
                chunks.append(chunk)
            return answer.status_code, answer.headers, b"".join(chunks)

    def with_key(self, provider: Provider, url: str, headers: dict[str, str]) -> str:
        """Adds the key and the mail address, where the environment has them."""
        key = self.environ.get(provider.key_variable, "") if provider.key_variable else ""
        extra = {}
        if key and provider.key_header:
            headers[provider.key_header] = key
        if key and provider.key_parameter:
            extra[provider.key_parameter] = key
        if provider.mail_parameter and (mail := self.environ.get("KB_MAILTO")):
            extra[provider.mail_parameter] = mail
        if not extra:
            return url
        return url + ("&" if "?" in url else "?") + urlencode(extra)

    def wait_for_turn(self, provider: Provider, url: str) -> None:
        host = urlsplit(url).netloc
        now = self.clock()
        due = self.next_request.get(host, now)
        if due > now:
            self.sleep(due - now)
        pace = self.pace_s.get(host, provider.pace_s)
        self.next_request[host] = max(self.clock(), due) + pace

    def read_limits(self, provider: Provider, url: str, headers: Mapping[str, str]) -> None:
        """Rate-limit headers in the spellings that providers use: a pace, or a pause when nothing is left."""
        host = urlsplit(url).netloc
        limit = number(headers.get("X-Rate-Limit-Limit"))
        interval = number((headers.get("X-Rate-Limit-Interval") or "").rstrip("s"))
        if limit and interval:  # Crossref
            self.pace_s[host] = max(provider.pace_s, interval / limit)
        remaining = number(headers.get("X-RateLimit-Remaining") or headers.get("RateLimit-Remaining"))
        reset = number(headers.get("X-RateLimit-Reset") or headers.get("RateLimit-Reset"))
        if remaining == 0 and reset is not None:
            # Some send seconds to wait, others the time of day in seconds since 1970.
            wait = reset - time.time() if reset > 1e9 else reset
            self.next_request[host] = max(
                self.next_request.get(host, 0.0), self.clock() + min(max(wait, 0.0), MAX_WAIT_S)
            )

    def refusal(self, provider: Provider, status: int, url: str, answer: bytes) -> FetchError:
        where = urlsplit(url).path
        if status in (404, 410):
            return RecordMissing(f"{provider.name} has no record at {where}", hint="check the identifier")
        if status in (401, 403):
            known = provider.key_variable and self.environ.get(provider.key_variable)
            hint = (
                f"the key in {provider.key_variable} was refused"
                if known
                else self.key_hint(provider).strip(" ,")
            )
            return FetchError(f"{provider.name} refuses access (status {status})", hint=hint)
        said = " ".join(answer[:200].decode("utf-8", "replace").split())[:100]
        return FetchError(f"{provider.name} answered {where} with status {status}: {said}")

    def key_hint(self, provider: Provider) -> str:
        """What a key would change."""
        if not provider.key_variable or self.environ.get(provider.key_variable):
            return ""
        return f", or set {provider.key_variable} to a key of your own for a higher limit"


def number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header: a number, or a date of HTTP.

    >>> retry_after("2", 0), retry_after("Thu, 01 Jan 1970 00:01:30 GMT", 60), retry_after("soon", 0)
    (2.0, 30.0, None)
    """
    if not text:
        return None
    seconds = number(text)
    if seconds is None:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds)
