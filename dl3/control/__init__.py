"""Client of the sockets of dl3d and dl3gen."""
