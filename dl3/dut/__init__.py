"""The devices under test: started, configured with the same routes, checked, measured, stopped."""
