"""The OpenAPI document: FastAPI's own, with the short vocabularies of this database filled in.

Names of devices, models, engines, formats and techniques stay free text: any usual spelling is understood, the lists
are long, and an unknown name is a 404 with the closest ones.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from web.deps import Library

REFERENCE = "#/components/schemas/"
COMPONENTS = {"bottleneck": "BottleneckName"}


def vocabulary(library: Library) -> dict[str, dict[str, Any]]:
    """Component name → enumeration."""
    snapshot = library.snapshot()
    names: dict[str, list[str]] = {
        "bottleneck": [each["slug"] for each in snapshot.bottlenecks],
    }
    return {
        COMPONENTS[name]: {
            "type": "string",
            "enum": values,
            "description": "A slug; other usual spellings are understood as well",
        }
        for name, values in names.items()
        if values
    }


def refer(name: str, schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The schema of one field with its names replaced by a reference, wherever it allows a string."""
    component = COMPONENTS.get(name)
    if component is None or component not in known:
        return schema
    reference = {"$ref": REFERENCE + component}
    kept: dict[str, Any] = {
        key: schema[key] for key in ("description", "default", "examples") if key in schema
    }
    if "anyOf" in schema:  # a sweep: one value or a list of them
        lists = [{**each, "items": reference} for each in schema["anyOf"] if each.get("type") == "array"]
        return {**kept, "anyOf": [reference, *lists]}
    if schema.get("type") == "array":
        return {**schema, "items": reference}
    if "null" in schema.get("type", ()):
        return {**kept, "anyOf": [reference, {"type": "null"}]}
    return {**kept, "allOf": [reference]}


def document(app: FastAPI) -> dict[str, Any]:
    """Made once per process."""
    if app.openapi_schema:
        return app.openapi_schema
    found: dict[str, Any] = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=TAGS
    )
    known = vocabulary(app.state.library)
    found.setdefault("components", {}).setdefault("schemas", {}).update(known)
    for path, methods in found["paths"].items():
        asks = path.rsplit("/", 1)[1] in ("recommend", "estimate", "sweep")
        for operation in methods.values():
            for each in operation.get("parameters", []) if asks else []:
                each["schema"] = refer(each["name"], each["schema"], known)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                properties = content["schema"].get("properties", {})
                for name, schema in properties.items():
                    properties[name] = refer(name, schema, known)
    app.openapi_schema = found
    return found


TAGS = [
    {"name": "questions", "description": "A scenario in, an answer out"},
    {"name": "knowledge base", "description": "Lists with filters and cursors; records by any identifier"},
    {"name": "graph and exports", "description": "Who cites whom, and files to take away"},
    {"name": "service", "description": "The server itself"},
]
