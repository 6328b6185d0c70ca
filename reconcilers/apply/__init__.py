"""Apply: ordered reconcilers that make the speaker hold what the intent says.

They know no dialect. `convert` makes the speaker's values of intent rows, `reconcilers` are the steps
in their order, `round` runs them and keeps what came of it.
"""

from reconcilers.apply.round import ApplyRound, ApplySummary

__all__ = ["ApplyRound", "ApplySummary"]
