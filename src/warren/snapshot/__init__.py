"""The contract between the pipeline and its readers: immutable files and the manifest that names them."""
