"""Other tools: their models, and their Python interfaces."""
