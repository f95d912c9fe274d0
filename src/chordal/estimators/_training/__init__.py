"""The one training pipeline: `steps.fit` is the list of its steps, each in the file of its name."""
