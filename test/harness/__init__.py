"""Shared by the system tests."""
