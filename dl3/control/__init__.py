"""JSON-RPC client for dl3d and dl3gen."""
