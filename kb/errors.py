"""Exceptions of the knowledge base.

KnowledgeBaseError
├── DatabaseError        the database cannot be opened, read or written
├── NotFound             no record has this id; carries the closest ids
└── InvalidQuery         a filter, cursor or query that cannot be understood
"""


class KnowledgeBaseError(ValueError):
    """Base of all errors raised by `kb`."""

    code = "kb"

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field


class DatabaseError(KnowledgeBaseError):
    code = "database"


class NotFound(KnowledgeBaseError):
    code = "not-found"

    def __init__(self, kind: str, asked: str, suggestions: list[str], *, hint: str = "") -> None:
        near = f"did you mean {', '.join(suggestions)}? " if suggestions else ""
        super().__init__(f"no {kind} {asked!r}", hint=near + hint, field="id")
        self.kind = kind
        self.asked = asked
        self.suggestions = suggestions


class InvalidQuery(KnowledgeBaseError):
    code = "invalid-query"
