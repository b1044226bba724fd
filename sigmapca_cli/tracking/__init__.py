"""Curves and results of a run, shown by another program as well: TensorBoard, MLflow, Weights & Biases."""
