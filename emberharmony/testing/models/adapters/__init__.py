"""What each library of models needs, one file each; a file is imported only when a model of its library is given."""
