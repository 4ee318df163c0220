"""Exceptions of the recommender.

RecommenderError
└── InvalidQuestion      a scenario field that has no meaning; names the field and what is allowed
"""


class RecommenderError(ValueError):
    """Base of all errors raised by `recommender`."""

    code = "recommender"

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field


class InvalidQuestion(RecommenderError):
    """A question that cannot be asked."""

    code = "invalid-value"
