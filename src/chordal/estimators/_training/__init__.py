"""The training pipeline of all estimators; `steps.fit` lists its steps."""
