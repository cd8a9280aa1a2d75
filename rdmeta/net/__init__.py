"""Kafka's protocol on a connection: a session that does no I/O, and the sockets that drive it."""
