"""Charts as pure functions: data → accessible SVG text. Colours are classes, so both themes hold."""
