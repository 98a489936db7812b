"""Rules about imports between frontend and backends."""
