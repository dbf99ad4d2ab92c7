"""The data types shared by all packages."""
