"""The client: keeps a cache true. A policy without I/O, and two shells over one driver."""
