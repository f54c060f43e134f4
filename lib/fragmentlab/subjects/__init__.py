"""What is put to the test, behind one interface: this assembler, a command, client libraries."""
