"""One module per command, each with `execute(arguments) -> exit code`; imported only when the command is used."""
