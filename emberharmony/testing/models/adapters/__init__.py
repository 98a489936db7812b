"""The adapters of the libraries of models, one file each, which is imported when a model of its library is given."""
