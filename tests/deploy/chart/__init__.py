"""The chart: what helm makes of it, by default and with the values that people give."""
