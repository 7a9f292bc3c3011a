"""Joins text, families and backends: loading, speaking, streaming."""
