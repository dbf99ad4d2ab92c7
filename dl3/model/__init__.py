"""The nouns that all rooms speak."""
