"""What a session answers, and when it speaks and waits."""
