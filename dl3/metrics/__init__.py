"""Metrics for Prometheus: their names, how they are read from running programs, the http server, dashboard and alert rules."""
