"""Addresses of servers, held free of secrets: they are written into run folders."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from omnidata.errors import UsageError

OPENAI_URL = "https://api.openai.com/v1"


def check_address(url: str, where: str) -> str:
    """The address without the slash at its end.

    Raises:
        UsageError: it is no address of an HTTP server, or could hold a secret; a message never
            quotes what may be one.

    Examples:
        >>> check_address("http://localhost:8000/v1/", "--base-url")
        'http://localhost:8000/v1'
    """
    problem = ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            problem = "that is no address of an HTTP server"
        elif "@" in url:
            problem = "the address holds a user's name or password"
        elif parts.query or parts.fragment:
            problem = "the address holds a query or a fragment"
    except ValueError:
        problem = "that is no address of an HTTP server"
    if problem or not re.fullmatch(r"[!-~]+", url):
        raise UsageError(
            problem or "the address holds blanks or signs that no address has",
            where=where,
            expected="http://HOST:PORT/PATH or https://..., without user, password and query",
            remedy="give the key in the environment or with --key-file",
        )
    return url.rstrip("/")


def is_openai(url: str) -> bool:
    """Whether the server is OpenAI's own, or its form on Azure."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))
