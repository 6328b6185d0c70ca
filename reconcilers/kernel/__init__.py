"""Routes in the kernel: another target of reconcilers, beside the speaker.

``writer`` is the process that writes them.
"""
