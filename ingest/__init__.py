"""The only writer of the knowledge base: reading, parsing, resolving and building."""
