"""What changes a machine: every change is a step of a plan, recorded before it is made, and undone on request."""
