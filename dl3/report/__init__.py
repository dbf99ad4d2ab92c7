"""Turns records into tables, charts and a page. Pure: nothing here reads or writes a file."""
