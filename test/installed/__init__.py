"""What runs in the Debian that installed_test.py boots, with the Python of the Debian there."""
