"""Exceptions of the cost model.

CostModelError
├── UnknownName      a model, device, engine or format that no catalogue holds
├── InvalidValue     a number or a combination that has no meaning
└── InvalidFile      a config.json, hardware.toml or CSV that cannot be read
"""


class CostModelError(ValueError):
    """Base of all errors raised by `costmodel`.

    Faces print `message` and `hint` on one line; `field` names the scenario field at fault.
    """

    code = "invalid"

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field


class UnknownName(CostModelError):
    """A name that resolves to nothing; `suggestions` holds the closest known slugs."""

    code = "unknown-name"

    def __init__(
        self, kind: str, asked: str, suggestions: list[str], *, hint: str = "", field: str | None = None
    ) -> None:
        near = f"did you mean {', '.join(suggestions)}? " if suggestions else ""
        super().__init__(f"unknown {kind} {asked!r}", hint=near + hint, field=field or kind)
        self.kind = kind
        self.asked = asked
        self.suggestions = suggestions


class InvalidValue(CostModelError):
    """A number outside its range, or settings that contradict each other."""

    code = "invalid-value"


class InvalidFile(CostModelError):
    """A user's file that cannot be read as what it claims to be."""

    code = "invalid-file"
