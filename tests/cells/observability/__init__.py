"""The cells that export what machines read."""
