"""The interfaces for people and programs. Surfaces call stages and show what they return or raise."""
