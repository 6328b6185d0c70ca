"""A dialect that feeds `beacon`: a Lighthouse generates a Beacon for each of its nodes."""
