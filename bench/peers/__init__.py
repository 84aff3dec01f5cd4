"""Other packages as contestants: converters, and one module for each package."""
