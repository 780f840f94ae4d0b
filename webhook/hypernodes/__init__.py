"""See the package map one level up."""
