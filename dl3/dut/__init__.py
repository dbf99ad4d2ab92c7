"""What can be tested: started, configured with the same routes, checked, measured, stopped."""
