"""BFD in virtual time: two engines and a line between them."""
