"""Real faults, rebuilt small, each with the truth measured under real DDP (torch 2.13, gloo, two ranks)."""
