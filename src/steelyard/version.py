"""The version of steelyard, for its own modules: the package itself imports the library."""

VERSION = "0.2.0"
