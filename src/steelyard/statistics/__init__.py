"""Pure functions: step times -> summaries -> verdicts -> words. Nothing here reads a file or a clock."""
