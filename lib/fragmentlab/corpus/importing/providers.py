"""Guessing who answered, from the host that was asked and from what chunks say of themselves."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from fragmentlab.corpus.streams import framing_of
from fragmentlab.wire.events import payloads

_HOSTS = tuple(
    pair.split("=")
    for pair in (
        "openai.azure.com=azure-openai services.ai.azure.com=azure-ai-foundry "
        "models.ai.azure.com=azure-ai-foundry models.inference.ai.azure.com=azure-ai-foundry "
        "openai.com=openai openrouter.ai=openrouter mistral.ai=mistral groq.com=groq deepseek.com=deepseek "
        "databricks.com=databricks azuredatabricks.net=databricks writer.com=writer x.ai=xai "
        "together.xyz=together together.ai=together huggingface.co=huggingface venice.ai=venice "
        "aliyuncs.com=dashscope cerebras.ai=cerebras fireworks.ai=fireworks perplexity.ai=perplexity "
        "googleapis.com=google githubcopilot.com=github-copilot anthropic.com=anthropic-openai-compat "
        "nvidia.com=nvidia sambanova.ai=sambanova deepinfra.com=deepinfra moonshot.ai=moonshot "
        "moonshot.cn=moonshot z.ai=z.ai bigmodel.cn=z.ai cloudflare.com=cloudflare hyperbolic.xyz=hyperbolic "
        "doubleword.ai=doubleword"
    ).split()
)
"""Suffixes of hosts, the longer ones first, and the public name of who answers there."""
_FINGERPRINTS = (
    (re.compile(r"fp_ollama"), "ollama"),
    (re.compile(r"b[0-9]+-[0-9a-f]{6,}"), "llama.cpp server"),
    (re.compile(r"[0-9.]+(-dev[0-9]+)?-native"), "text-generation-inference"),
)
_CHUNKS_READ = 8
_HEAD = 1 << 16


def provider_of(host: str | None, body: bytes) -> str | None:
    """Return the public name of who answered, or the host where none is known; None where nothing says."""
    if host is not None:
        name = host.partition(":")[0].lower()
        for suffix, provider in _HOSTS:
            if name == suffix or name.endswith("." + suffix):
                return provider
        if name not in ("localhost", "127.0.0.1"):
            return name
    first = _first_chunks(body)
    if any(isinstance(chunk.get("provider"), str) for chunk in first):
        return "openrouter"
    return "local" if host is not None else None


def model_of(body: bytes) -> str | None:
    """Return the first model that a chunk names."""
    return next(
        (c["model"] for c in _first_chunks(body) if isinstance(c.get("model"), str) and c["model"]), None
    )


def server_of(body: bytes) -> str | None:
    """Guess the server software from its system fingerprint."""
    for chunk in _first_chunks(body):
        fingerprint = chunk.get("system_fingerprint")
        if isinstance(fingerprint, str):
            for pattern, server in _FINGERPRINTS:
                if pattern.fullmatch(fingerprint):
                    return server
    return None


def _first_chunks(body: bytes) -> list[dict[str, Any]]:
    chunks = []
    events = payloads(body[:_HEAD], framing_of(body))
    for line in islice((line for data in events for line in data.split(b"\n")), _CHUNKS_READ):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            chunks.append(value)
    return chunks
