"""The end-to-end path over a real socket: provider, gateway, host authorization, tools, agent loop.

One response at a time: ``Gateway.ask`` streams bytes into the assembler, ``Policy`` judges the whole
proposal, ``Agent`` executes it on a ``Workspace`` and notes it in a ``Journal``. ``Provider`` plays scenario
files to it, or to anyone's client; ``play`` puts all of them together.
"""
