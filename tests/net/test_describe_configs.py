"""DescribeConfigs beside kafka-python's codec, and what its parser refuses."""

from __future__ import annotations

import random
from typing import Any

import damage
import pytest
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

from rdmeta.errors import MalformedError, TopicAuthorizationError, UnsupportedVersionError
from rdmeta.net.describe_configs import TopicConfig, encode_request, parse_response

VERSIONS = range(1, 5)
TOPIC, BROKER = 2, 4
Result = DescribeConfigsResponse.DescribeConfigsResult
Row = Result.DescribeConfigsResourceResult


def row(key: str, value: str | None) -> Any:
    synonym = Row.DescribeConfigsSynonym(name=key, value=value, source=5)
    return Row(
        name=key,
        value=value,
        read_only=False,
        config_source=5,
        is_sensitive=value is None,
        synonyms=[synonym],
        config_type=3,
        documentation="what it does",
    )


def answer(version: int, kind: int = TOPIC, message: str | None = "no right") -> bytes:
    results = [
        Result(
            error_code=0,
            error_message=None,
            resource_type=kind,
            resource_name="orders",
            configs=[row("min.insync.replicas", "2"), row("secret", None)],
        ),
        Result(
            error_code=29,
            error_message=message,
            resource_type=kind,
            resource_name="hidden",
            configs=[],
        ),
    ]
    response = DescribeConfigsResponse(throttle_time_ms=7, results=results)
    return bytes(response.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("keys", [None, ["min.insync.replicas"], ["k" * 200, "b"]])
@pytest.mark.parametrize("topics", [[], ["orders"], [f"t{i}" * 50 for i in range(300)]])
def test_requests_are_those_of_kafka_python(
    version: int, keys: list[str] | None, topics: list[str]
) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    theirs = DescribeConfigsRequest(
        resources=[
            resource(resource_type=TOPIC, resource_name=name, configuration_keys=keys)
            for name in topics
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    assert encode_request(version, topics, keys) == theirs.encode(version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_kafka_python_are_read(version: int) -> None:
    read = parse_response(answer(version), version)
    assert read["orders"] == TopicConfig(None, {"min.insync.replicas": "2", "secret": None})
    error = read["hidden"].error
    assert isinstance(error, TopicAuthorizationError)
    assert str(error) == "TOPIC_AUTHORIZATION_FAILED: no right"
    assert read["hidden"].values == {}
    assert list(read) == ["orders", "hidden"]


def test_an_error_without_a_message_has_its_name() -> None:
    error = parse_response(answer(4, message=None), 4)["hidden"].error
    assert str(error) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_about_something_else_than_topics_is_malformed(version: int) -> None:
    with pytest.raises(MalformedError, match="type 4 instead of 2"):
        parse_response(answer(version, BROKER), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_prefix_of_an_answer_and_a_longer_one_are_malformed(version: int) -> None:
    damage.assert_no_other_length_is_read(parse_response, answer(version), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_answer_is_read_or_malformed(version: int) -> None:
    rng = random.Random(damage.seed())
    body, refused = answer(version), 0
    for _ in range(3000):
        try:
            parse_response(damage.corrupted(rng, body), version)
        except MalformedError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_huge_count_takes_no_memory(version: int) -> None:
    with pytest.raises(MalformedError, match="announces 2147483647 elements"):
        parse_response(bytes(4) + b"\x7f\xff\xff\xff" + bytes(100), version)
    with pytest.raises(MalformedError, match="announces -1 elements"):
        parse_response(bytes(4) + b"\xff\xff\xff\xff", version)


def test_a_text_that_is_too_long_is_refused() -> None:
    for version in VERSIONS:
        with pytest.raises(ValueError, match="32768 bytes"):
            encode_request(version, ["orders"], ["k" * 32768])


def test_unknown_versions_are_refused() -> None:
    for version in (-1, 0, 5):
        with pytest.raises(UnsupportedVersionError):
            encode_request(version, ["orders"])
        with pytest.raises(UnsupportedVersionError):
            parse_response(answer(4), version)
