"""`/api`: the REST reference, drawn from the OpenAPI document that programs read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from web.render import page

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/api")
def api(request: Request) -> HTMLResponse:
    """Every route with its parameters, ranges and an example."""
    document = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = body_of(operation)
            groups.setdefault((operation.get("tags") or ["other"])[0], []).append(
                {
                    "id": f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
                    "method": method.upper(),
                    "path": path,
                    "summary": operation.get("summary", ""),
                    "description": operation.get("description", ""),
                    "parameters": [parameter(each) for each in operation.get("parameters", [])]
                    + [
                        {"name": name, "kind": kind_of(schema), "description": schema.get("description", "")}
                        for name, schema in body.get("schema", {}).get("properties", {}).items()
                    ],
                    "example": example_of(body),
                }
            )
    return page(
        request,
        "api.html",
        title="REST API: the same answers for programs",
        json_url="/api/v1/openapi.json",
        groups=list(groups.items()),
        origin=str(request.base_url).rstrip("/"),
    )


def body_of(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {})
    return next(iter(content.values()), {})


def example_of(body: Mapping[str, Any]) -> str:
    examples = list(body.get("examples", {}).values())
    return json.dumps(examples[-1]["value"], indent=2) if examples else ""


def parameter(each: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": each["name"],
        "kind": kind_of(each.get("schema", {})),
        "description": each.get("description", ""),
    }


def kind_of(schema: Mapping[str, Any]) -> str:
    """`integer, 1 to 200, default 50`."""
    schema = {**schema, **next((one for one in schema.get("anyOf", []) if one.get("type") != "null"), {})}
    kind = schema.get("type", "")
    parts = [" or ".join(each for each in kind if each != "null") if isinstance(kind, list) else str(kind)]
    if "enum" in schema:
        parts = [" | ".join(str(each) for each in schema["enum"] if each is not None)]
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if low is not None and high is not None:
        parts.append(f"{low:,} to {high:,.0f}")
    if schema.get("default") not in (None, "", []):
        parts.append(f"default {schema['default']}")
    return ", ".join(part for part in parts if part)
