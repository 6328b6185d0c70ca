"""The cells that apply the intent."""
