"""Virtual machines rooms: network namespaces, cables between them, and programs that run inside; all gone at the end."""
