"""Results on disk: one JSON line per trial, with the facts of the machine and the build."""
