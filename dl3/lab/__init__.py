"""Virtual test networks: network namespaces, links between them, and programs inside; all removed at the end."""
