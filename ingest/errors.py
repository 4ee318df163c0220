"""Exceptions of ingestion.

IngestError
├── UnreadableSource     nothing that we read looks like this
├── FetchError           a provider could not be asked, or did not answer
│   ├── NoNetwork        nothing of the provider can be reached from here
│   └── RecordMissing    the provider has no such record
└── StoreError           the knowledge base refused the change
"""


class IngestError(ValueError):
    """Base of all errors raised by `ingest`."""

    code = "ingest"

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field


class UnreadableSource(IngestError):
    code = "unreadable-source"


class FetchError(IngestError):
    code = "fetch"


class NoNetwork(FetchError):
    code = "no-network"


class RecordMissing(FetchError):
    code = "record-missing"


class StoreError(IngestError):
    code = "store"
