"""Flow export: samples and drops of dl3d's workers to collectors, as sFlow version 5 or IPFIX."""
