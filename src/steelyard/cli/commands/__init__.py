"""One file per command: `execute(arguments) -> exit code`; imported only when the command is called."""
