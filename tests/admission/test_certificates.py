"""Our own certificates: what is made, when it is renewed, and how a new one comes into use."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assetlock.admission.upkeep import certificates
from assetlock.admission.upkeep.certificates import Bundle, issue, renewed
from assetlock.admission.upkeep.tls import GivenFiles, ServingContext

NAMES = ("localhost", "127.0.0.1", "::1", "assetlock-admission.assetlock-system.svc")
NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return issue(NAMES, NOW)


@pytest.fixture
def files(tmp_path: Path, bundle: Bundle) -> tuple[Path, Path]:
    paths = tmp_path / "tls.crt", tmp_path / "tls.key"
    _write(paths, bundle)
    return paths


def test_nothing_is_renewed_before_it_is_due(bundle: Bundle) -> None:
    assert renewed(bundle, NAMES, NOW + datetime.timedelta(days=59)) is None


def test_the_serving_certificate_is_renewed_a_month_before_its_end_under_the_same_ca(bundle: Bundle) -> None:
    next_one = renewed(bundle, NAMES, NOW + datetime.timedelta(days=61))
    assert next_one is not None
    assert next_one.trusted == bundle.trusted
    assert certificates.expires(next_one) > NOW + datetime.timedelta(days=150)


def test_a_further_name_makes_a_new_certificate_that_keeps_the_old_names(bundle: Bundle) -> None:
    next_one = renewed(bundle, ["other.example"], NOW)
    assert next_one is not None
    assert renewed(next_one, [*NAMES, "other.example"], NOW) is None


def test_the_ca_is_renewed_a_year_before_its_end_and_the_old_one_stays_trusted(bundle: Bundle) -> None:
    next_one = renewed(bundle, NAMES, NOW + datetime.timedelta(days=3650 - 364))
    assert next_one is not None
    assert next_one.trusted.count("BEGIN CERTIFICATE") == 2
    assert next_one.trusted.endswith(bundle.trusted)
    third = renewed(next_one, NAMES, NOW + datetime.timedelta(days=7000))
    assert third is not None
    assert third.trusted.count("BEGIN CERTIFICATE") == 2


def test_keys_are_not_shown_when_a_bundle_is_printed(bundle: Bundle) -> None:
    assert "PRIVATE" not in repr(bundle)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_client_that_trusts_the_ca_connects(
    files: tuple[Path, Path], bundle: Bundle, name: str
) -> None:
    async with _serving(files) as (_, port):
        assert await _presented(bundle, port, name)


async def test_a_new_certificate_counts_from_the_next_handshake_and_drops_no_connection(
    files: tuple[Path, Path], bundle: Bundle
) -> None:
    next_one = renewed(bundle, [*NAMES, "other.example"], NOW)
    assert next_one is not None
    async with _serving(files) as (context, port):
        reader, writer = await _connected(bundle, port)
        before = await _presented(bundle, port)
        _write(files, next_one)
        assert await context.refresh()
        assert await _presented(bundle, port) != before
        writer.write(b"still there?\n")
        assert await reader.readline() == b"still there?\n"
        writer.close()


async def test_a_certificate_without_its_key_does_not_replace_one_that_works(
    files: tuple[Path, Path], bundle: Bundle
) -> None:
    async with _serving(files) as (context, port):
        before = await _presented(bundle, port)
        files[0].write_text(issue(NAMES, NOW).certificate)
        with pytest.raises(ssl.SSLError):
            await context.refresh()
        assert await _presented(bundle, port) == before


def _write(files: tuple[Path, Path], bundle: Bundle) -> None:
    files[0].write_text(bundle.certificate)
    files[1].write_text(bundle.key)


@contextlib.asynccontextmanager
async def _serving(files: tuple[Path, Path]) -> AsyncIterator[tuple[ServingContext, int]]:
    """An echo over TLS."""
    context = ServingContext(GivenFiles(*files))
    await context.refresh()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context.context)
    async with server:
        yield context, server.sockets[0].getsockname()[1]


async def _connected(
    bundle: Bundle, port: int, name: str = "localhost"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    trusting = ssl.create_default_context(cadata=bundle.trusted)
    return await asyncio.open_connection(
        "127.0.0.1", port, family=socket.AF_INET, ssl=trusting, server_hostname=name
    )


async def _presented(bundle: Bundle, port: int, name: str = "localhost") -> bytes:
    _, writer = await _connected(bundle, port, name)
    shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return shown
