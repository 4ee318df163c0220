"""One module per provider or file format: fetch_* does I/O, parse_* is pure."""
