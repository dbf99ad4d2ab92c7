"""Records in; tables, charts and a page out. Pure: nothing here reads or writes a file."""
