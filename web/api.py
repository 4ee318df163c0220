"""REST: questions. The same Answer as JSON that the command line prints and the pages draw."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from recommender import service
from recommender.answer import plain
from recommender.errors import InvalidQuestion
from recommender.grid import MAX_ROWS
from recommender.question import Question
from web import schemas
from web.ask import FIELDS, SCENARIO_FIELDS, check_layout, check_names, question_of
from web.deps import LibraryDep
from web.errors import Contradiction
from web.own_device import is_inline

router = APIRouter(prefix="/api/v1", tags=["questions"])

MAX_BODY_BYTES = 1_000_000


def body_schema(schema: dict[str, Any], *examples: dict[str, Any]) -> dict[str, Any]:
    named = {f"example {number}": {"value": example} for number, example in enumerate(examples, start=1)}
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "examples": named}},
        }
    }


SCENARIO = schemas.scenario_schema(FIELDS)
POST_ERRORS = schemas.error_responses(404, 409, 413, 422)
ERRORS = schemas.error_responses(404, 409, 422)


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a POST; anything else is refused in one line."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise InvalidQuestion(
            f"content type {kind[:60]!r} is not JSON", hint="send application/json", field=None
        )
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            from starlette.exceptions import HTTPException

            raise HTTPException(413, f"the body is longer than {MAX_BODY_BYTES:,} bytes")
        chunks.append(chunk)
    try:
        found = json.loads(b"".join(chunks) or b"null")
    except (ValueError, RecursionError):
        raise InvalidQuestion(
            "the body is not JSON",
            hint='send an object, for example {"hardware": "rtx-3090", "model": "70b"}',
        ) from None
    if not isinstance(found, dict):
        raise InvalidQuestion(
            "the body is not a JSON object", hint='for example {"hardware": "rtx-3090", "model": "70b"}'
        )
    check_types(found)
    return found


def check_types(given: dict[str, Any]) -> None:
    """JSON has types, so a body must use them: query strings and forms carry text, and may."""
    for name, value in given.items():
        if name == "using" and isinstance(value, list) and not all(isinstance(each, str) for each in value):
            raise InvalidQuestion("using must list slugs", hint='for example ["awq"]', field=name)
        kind = schemas.RANGES.get(name, ("", {}))[0]
        for each in value if isinstance(value, list) else [value]:
            if kind == "boolean" and not isinstance(each, bool | None):
                raise InvalidQuestion(f"{name} must be true or false", hint="without quotes", field=name)
            if kind in ("integer", "number") and isinstance(each, str):
                raise InvalidQuestion(f"{name} must be a number, not text", hint="without quotes", field=name)


def query_of(request: Request) -> dict[str, Any]:
    """Query parameters as a scenario; a name given twice is refused rather than guessed at."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            raise InvalidQuestion(f"{name[:60]} is given twice", hint="give it once", field=name[:60])
        found[name] = value
    return found


def scenario_question(given: dict[str, Any]) -> Question:
    """A question for `estimate`: what only `recommend` asks is not accepted."""
    for name in given:
        if name in FIELDS and name not in SCENARIO_FIELDS:
            raise InvalidQuestion(f"{name} belongs to recommend", hint="leave it out here", field=name)
    return question_of(given)


def answered(library: Any, given: dict[str, Any]) -> Response:
    answer = library.recommend(question_of(given))
    return Response(answer.encoded(), media_type="application/json")


def estimated(given: dict[str, Any], library: Any) -> Response:
    return JSONResponse(plain(service.estimate(scenario_question(given), library.knowledge())))


@router.post(
    "/recommend",
    response_model=schemas.AnswerBody,
    responses=POST_ERRORS,
    summary="Which techniques pay off",
    description="Ranks every technique for one scenario: the baseline, plans and techniques with gains and intervals, papers and published results behind each, and every rejected technique with its reason.",
    openapi_extra=body_schema(SCENARIO, schemas.EXAMPLE, schemas.EXAMPLE_FULL),
)
async def post_recommend(request: Request, library: LibraryDep) -> Response:
    given = await read_body(request)
    return await run_in_threadpool(answered, library, given)


@router.get(
    "/recommend",
    response_model=schemas.AnswerBody,
    responses=ERRORS,
    summary="Which techniques pay off (as a link)",
    description="The same as POST, with the scenario as query parameters, so that an answer can be shared and cached.",
    openapi_extra={"parameters": schemas.query_parameters(FIELDS)},
)
def get_recommend(request: Request, library: LibraryDep) -> Response:
    return answered(library, query_of(request))


@router.post(
    "/estimate",
    response_model=schemas.Estimate,
    responses=POST_ERRORS,
    summary="Memory and time of one scenario",
    description="Memory, time to first token, time per token and throughput, with every operator and every assumption. Times of what does not fit are those it would have with enough memory; `fits` says so.",
    openapi_extra=body_schema(schemas.scenario_schema(SCENARIO_FIELDS), schemas.EXAMPLE),
)
async def post_estimate(request: Request, library: LibraryDep) -> Response:
    given = await read_body(request)
    return await run_in_threadpool(estimated, given, library)


@router.get(
    "/estimate",
    response_model=schemas.Estimate,
    responses=ERRORS,
    summary="Memory and time of one scenario (as a link)",
    description="The same as POST /estimate, with the scenario as query parameters.",
    openapi_extra={"parameters": schemas.query_parameters(SCENARIO_FIELDS)},
)
def get_estimate(request: Request, library: LibraryDep) -> Response:
    return estimated(query_of(request), library)


ROW = "One JSON object per line (application/x-ndjson): the swept fields, `fits`, memory in bytes, times in ms, `throughput_tok_s`."


@router.post(
    "/sweep",
    responses={
        200: {"description": ROW, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        **POST_ERRORS,
    },
    response_class=StreamingResponse,
    summary="A grid of scenarios, streamed",
    description=f"Any field may be a list; the grid of all combinations, at most {MAX_ROWS:,} rows, is priced at once and streamed. {ROW}",
    openapi_extra=body_schema(
        schemas.scenario_schema(SCENARIO_FIELDS, lists=True),
        {
            "hardware": "rtx-3090",
            "model": "llama-2-7b",
            "batch": [1, 2, 4, 8],
            "weight_format": ["fp16", "int4"],
        },
    ),
)
async def post_sweep(request: Request, library: LibraryDep) -> Response:
    given = await read_body(request)
    return await run_in_threadpool(swept, given, library)


@router.get(
    "/sweep",
    responses={
        200: {"description": ROW, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        **ERRORS,
    },
    response_class=StreamingResponse,
    summary="A grid of scenarios (as a link)",
    description="The same as POST /sweep; lists are comma-separated (`batch=1,2,4`).",
    openapi_extra={
        "parameters": [schemas.listed_parameter(entry) for entry in schemas.query_parameters(SCENARIO_FIELDS)]
    },
)
def get_sweep(request: Request, library: LibraryDep) -> Response:
    given = {
        name: value
        if name == "using" or "," not in value or is_inline(value)
        else [part for part in value.split(",") if part]
        for name, value in query_of(request).items()
    }
    given = {name: value for name, value in given.items() if value != []}  # only commas: absent
    return swept(given, library)


def swept(given: dict[str, Any], library: Any) -> Response:
    """The rows as a stream; faults in the request are found before the first byte."""
    for name in ("hardware", "model"):
        values = given.get(name)
        for value in values if isinstance(values, list) else [values]:
            check_names({name: value})
    check_layout(given)
    size = math.prod(
        len(value) for name, value in given.items() if isinstance(value, list) and name != "using"
    )
    if size > MAX_ROWS:
        raise Contradiction(
            f"the grid has {size:,} rows", hint=f"at most {MAX_ROWS:,} at once; sweep in parts", field=None
        )
    rows = iter(service.sweep(given, library.knowledge()))
    first = next(rows, None)

    async def lines() -> AsyncIterator[bytes]:
        if first is not None:
            yield encode(first)
        async for row in iterate_in_threadpool(rows):
            yield encode(row)

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def encode(row: dict[str, Any]) -> bytes:
    return json.dumps(plain(row), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
