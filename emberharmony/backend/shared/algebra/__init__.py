"""What backends share of linear algebra."""
