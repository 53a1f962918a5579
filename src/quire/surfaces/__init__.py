"""What people and programs touch. Surfaces call stages and show what they return or raise."""
