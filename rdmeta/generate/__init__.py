"""Clusters of known truth: events by Kafka's rules, written as recordings and metadata logs."""
