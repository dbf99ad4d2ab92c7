"""Client of the socket of dl3d."""
