"""Networks of speakers against a plain model of what BGP has to come to."""
