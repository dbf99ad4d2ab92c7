"""Command line: commands, arguments, progress, printing. The only package that prints."""
