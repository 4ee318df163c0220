"""The web face: REST and HTML over the same Answer."""
