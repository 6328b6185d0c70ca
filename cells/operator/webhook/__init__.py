"""The webhook of an operator: reviews objects before the API server stores them."""
