"""Pure functions: step times -> summaries -> verdicts -> sentences. Nothing here reads a file or a clock."""
