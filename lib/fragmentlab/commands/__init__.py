"""One module a command: HELP, configure(parser) and run(args) -> exit status."""
