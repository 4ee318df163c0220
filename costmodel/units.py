"""The only place where a scale factor is written."""

KILO = 1e3
GIGA = 1e9
TERA = 1e12
GB = 1e9  # what bandwidth and file sizes are quoted in
MIB = 2**20
GIB = 2**30  # what a GPU sold as "80 GB" holds 80 of
MILLISECONDS_PER_SECOND = 1e3
BITS_PER_BYTE = 8
