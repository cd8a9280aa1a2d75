"""DescribeCluster beside kafka-python's codec, and what its parser refuses."""

from __future__ import annotations

import damage
import pytest
from kafka.protocol.admin import DescribeClusterRequest, DescribeClusterResponse

from rdmeta.errors import Error, UnsupportedVersionError
from rdmeta.net.describe_cluster import ClusterBroker, encode_request, parse_response

VERSIONS = range(3)


def answer(version: int, error: int = 0, message: str | None = None, controller: int = 2) -> bytes:
    broker = DescribeClusterResponse.DescribeClusterBroker
    brokers = [
        broker(broker_id=1, host="one.example", port=9092, rack="a", is_fenced=True),
        broker(broker_id=2, host="two.example", port=9093, rack=None, is_fenced=False),
    ]
    response = DescribeClusterResponse(
        throttle_time_ms=7,
        error_code=error,
        error_message=message,
        endpoint_type=1,
        cluster_id="cluster",
        controller_id=controller,
        brokers=brokers,
        authorized_operations=None,
    )
    return bytes(response.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("operations", [False, True])
def test_requests_are_those_of_kafka_python(version: int, operations: bool) -> None:
    theirs = DescribeClusterRequest(
        include_cluster_authorized_operations=operations,
        endpoint_type=1,
        include_fenced_brokers=version >= 2,
    ).encode(version=version)
    ours = encode_request(version, authorized_operations=operations, fenced=version >= 2)
    assert ours == theirs


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_kafka_python_are_read(version: int) -> None:
    read = parse_response(answer(version), version)
    fenced = (True, False) if version >= 2 else (None, None)
    assert read.brokers == (
        ClusterBroker(1, "one.example", 9092, "a", fenced[0]),
        ClusterBroker(2, "two.example", 9093, None, fenced[1]),
    )
    assert (read.throttle_ms, read.cluster_id, read.controller_id) == (7, "cluster", 2)
    assert read.authorized_operations is None


def test_no_controller_is_none() -> None:
    assert parse_response(answer(0, controller=-1), 0).controller_id is None


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_is_raised_with_its_code_and_text(version: int) -> None:
    with pytest.raises(Error, match="CLUSTER_AUTHORIZATION_FAILED: not you") as raised:
        parse_response(answer(version, 31, "not you"), version)
    assert raised.value.code == 31


@pytest.mark.parametrize("version", VERSIONS)
def test_every_prefix_of_an_answer_and_a_longer_one_are_malformed(version: int) -> None:
    damage.assert_no_other_length_is_read(parse_response, answer(version), version)


def test_versions_that_are_unknown_or_cannot_ask_are_refused() -> None:
    for version in (-1, 3):
        with pytest.raises(UnsupportedVersionError):
            encode_request(version)
        with pytest.raises(UnsupportedVersionError):
            parse_response(answer(2), version)
    with pytest.raises(UnsupportedVersionError, match="v2 can"):
        encode_request(1, fenced=True)
