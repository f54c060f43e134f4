"""The end-to-end path over a real socket: provider, gateway, host authorization, tools, agent loop."""
