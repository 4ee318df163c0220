"""Exceptions of the taxonomy.

TaxonomyError
└── DataError        a data file that says something impossible; names file, entry, field and allowed values
"""


class TaxonomyError(ValueError):
    """Base of all errors raised by `taxonomy`."""

    code = "taxonomy"

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field


class DataError(TaxonomyError):
    """A packaged data file is wrong; the build must stop."""

    code = "data"
