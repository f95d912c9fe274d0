"""Rules by which single examples change the weights: in Python, and compiled for chains."""
