"""Routes survive the restart of one end: RFC 4724, RFC 8538, RFC 9494, seen from both sides."""
