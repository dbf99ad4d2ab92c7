"""The command that people type: run, show and measure dl3d."""

VERSION = "0.1.0"
