"""Methods, arguments, progress, printing: the only room that prints."""
