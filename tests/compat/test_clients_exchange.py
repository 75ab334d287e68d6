"""Whatever one client writes, in any codec, every other client reads."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from asking.clients import CLIENTS, CODECS, Sample, client_by_name
from asking.connection import Connection
from asking.requests import create_topic, fetch

from penstock.kafka.records.batch import CODEC_MASK, decode_header

LONG = "a drop of água ✓ " * 60  # long enough to be worth compressing for clients that look


def samples(writer: str, codec: str, empty_too: bool) -> list[Sample]:
    """What each client writes with each codec: keys, headers, null keys, tombstones, empty values."""
    said = [
        Sample(f"{writer}-{codec}", LONG + writer, (("codec", codec), ("schlüssel", "wert"))),
        Sample(None, LONG + codec, (("codec", codec), ("schlüssel", "wert"))),
        Sample(f"{writer}-{codec}", None, (("codec", codec), ("schlüssel", "wert"))),
    ]
    return [*said, Sample("nothing", "", said[0].headers)] if empty_too else said


class Written:
    """One partition per broker into which every client has written with every codec."""

    def __init__(self, address: str, need_tool: Callable[[str], str]) -> None:
        self.address = address
        self.topic = f"exchange-{os.getpid()}"
        self.samples: list[Sample] = []
        self.codecs: list[tuple[int, str, str]] = []
        with Connection(address) as connection:
            create_topic(connection, self.topic)
        for name in CLIENTS:
            client = client_by_name(name, need_tool)
            for codec in CODECS:
                mine = samples(name, codec, client.writes_empty_values)
                client.write(address, self.topic, mine, codec)
                self.codecs.append((len(self.samples), name, codec))
                self.samples += mine


@pytest.fixture(scope="module")
def written(broker_address: str, need_tool: Callable[[str], str]) -> Written:
    """Written once for each broker."""
    return Written(broker_address, need_tool)


@pytest.mark.parametrize("reader", CLIENTS)
def test_every_client_reads_what_every_client_wrote(
    written: Written, reader: str, need_tool: Callable[[str], str]
) -> None:
    """Keys, values, headers and order survive all pairs of clients in all five codecs."""
    client = client_by_name(reader, need_tool)
    assert client.read(written.address, written.topic, len(written.samples)) == written.samples


def test_batches_are_kept_in_the_codec_of_their_writer(written: Written) -> None:
    """The broker does not compress anew, and no client fell back to plain records."""
    with Connection(written.address) as connection:
        for offset, writer, codec in written.codecs:
            records = fetch(connection, written.topic, offset).records
            assert records is not None
            assert CODECS[decode_header(records).attributes & CODEC_MASK] == codec, f"{writer} with {codec}"
