"""AWS MSK with IAM: `oauth_cb` signs a token with the AWS credentials of this machine.

BOOTSTRAP=b-1.NAME.kafka.eu-west-1.amazonaws.com:9098 AWS_REGION=eu-west-1 python msk_iam.py
"""

import os

import rdmeta


def token(config: str) -> tuple[str, float]:
    """Returns a token and its expiry; the client asks again at 80 % of the token's life."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    value, expiry_ms = MSKAuthTokenProvider.generate_auth_token(os.environ["AWS_REGION"])
    return value, expiry_ms / 1000


if "BOOTSTRAP" in os.environ:
    conf = {
        "bootstrap.servers": os.environ["BOOTSTRAP"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, conf=conf)
    for broker in cache.brokers:
        print(f"broker {broker.id}: {broker.host}:{broker.port}")
else:
    print("set BOOTSTRAP to the servers of a cluster, and AWS_REGION")
