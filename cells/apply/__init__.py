"""The apply cell: the reconcilers of the speaker, the job that runs them, and their verification.

Any cell may contribute to the group `Reconciler`; a reconciler's target need not be the speaker.
"""
