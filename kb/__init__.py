"""The SQL knowledge base: tables, queries, search, citation graph, export and the command line."""
