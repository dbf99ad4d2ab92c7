"""What runs in the guest of installed_test.py, with the Python of the Debian there."""
