"""BMP towards monitoring stations, in virtual time and without sockets."""
