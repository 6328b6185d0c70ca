"""Dashboards for Grafana: the fleet, one node, one peer; ``deploy.generate`` writes them as JSON.

They are built with Grafana's own types, which are its schema. Every query is run by a test against a
Prometheus that scrapes both programs.
"""
