"""Results as files for other programs, papers and people: one file of code for each format, and the table of all formats."""
