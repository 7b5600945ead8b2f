"""Which proxy is between the client and the API server, by the rules that kubectl follows.

The kubeconfig's `proxy-url` goes first. Else the environment's `HTTPS_PROXY` and `NO_PROXY` (host names, domains,
addresses, networks, `*`) count, never for this very machine.
"""

from __future__ import annotations

import ipaddress
import urllib.parse
from collections.abc import Mapping


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for the server, if any."""
    url = urllib.parse.urlsplit(server)
    host = (url.hostname or "").rstrip(".").lower()
    proxy = _variable(environ, f"{url.scheme}_proxy")
    if not proxy or _is_local(host) or _is_excluded(host, url.port, _variable(environ, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def check_proxy(proxy: str) -> str:
    """The proxy's URL, if it is one that can be used; ValueError otherwise."""
    url = urllib.parse.urlsplit(proxy)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"a proxy must be a URL like http://host:3128, not {proxy!r}")
    return proxy


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excluded(host: str, port: int | None, no_proxy: str) -> bool:
    return any(_matches(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(host: str, port: int | None, entry: str) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry and address is not None:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _address(entry) is not None:
        return address == _address(entry)
    name, _, wanted_port = entry.partition(":")
    if wanted_port and wanted_port != str(port):
        return False
    domain = name.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not name.startswith((".", "*")))
