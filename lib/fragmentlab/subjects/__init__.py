"""What is put to the test, behind one interface: a stream in, an observation out."""
