"""The contract between the pipeline and whoever serves its results: files named by a manifest that appears last."""
