"""Virtual rooms: network namespaces, cables between them, programs that run inside; all gone at the end."""
