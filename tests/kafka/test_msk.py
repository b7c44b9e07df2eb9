"""No AWS here: the tokens are held against the form that AWS documents for its brokers."""

import base64
import json
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from warren.config.kafka import Connection
from warren.config.security import Iam
from warren.java import java_home, spark_jars
from warren.kafka.msk import MskTokens
from warren.kafka.options import to_java


@pytest.fixture(autouse=True)
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    file = tmp_path / "credentials"
    file.write_text("[ops]\naws_access_key_id = AKIDOPS\naws_secret_access_key = hush\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.mark.parametrize(("profile", "key"), [(None, "AKIDEXAMPLE"), ("ops", "AKIDOPS")])
def test_a_token_is_a_signed_request_to_connect(profile: str | None, key: str) -> None:
    token, expires_s = MskTokens(Iam("eu-west-1", profile=profile))("")
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, url.path) == ("https", "kafka.eu-west-1.amazonaws.com", "/")
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    assert query["X-Amz-Credential"].startswith(f"{key}/")
    assert query["X-Amz-Credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert query["X-Amz-SignedHeaders"] == "host"
    assert len(query["X-Amz-Signature"]) == 64
    assert query["X-Amz-Expires"] == "900"
    assert 800 < expires_s - time.time() <= 900
    assert "wJalrXUtnFEMI" not in url.query


@pytest.mark.long
def test_java_signs_the_same_request_with_the_jars_that_are_downloaded() -> None:
    pyspark_jars = Path(pyspark.__file__).parent / "jars"
    class_path = [*spark_jars(with_msk=True), *pyspark_jars.glob("*.jar")]
    port = launch_gateway(
        jarpath=str(next(pyspark_jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join(map(str, class_path)),
        java_path=str(java_home() / "bin" / "java"),
        die_on_exit=True,
    )
    with closing(JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))) as gateway:
        jvm: Any = gateway.jvm
        options = to_java(Connection(("b-1.example.kafka.eu-west-1.amazonaws.com:9098",), iam=Iam("eu-west-1")))
        login = {"sasl.jaas.config": jvm.org.apache.kafka.common.config.types.Password(options["sasl.jaas.config"])}
        context = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(login)
        # Loading the module makes its mechanism known, as the login of a client does.
        jvm.java.lang.Class.forName(context.configurationEntries()[0].getLoginModuleName())
        handler = jvm.java.lang.Class.forName(options["sasl.client.callback.handler.class"]).newInstance()
        handler.configure({}, options["sasl.mechanism"], context.configurationEntries())
        mechanisms = gateway.new_array(jvm.java.lang.String, 1)
        mechanisms[0] = options["sasl.mechanism"]
        host = "b-1.example.kafka.eu-west-1.amazonaws.com"
        client = jvm.javax.security.sasl.Sasl.createSaslClient(mechanisms, None, "kafka", host, {}, handler)
        request = json.loads(bytes(client.evaluateChallenge(b"")))
        gateway.shutdown()
    assert (request["version"], request["action"], request["host"]) == ("2020_10_22", "kafka-cluster:Connect", host)
    assert request["x-amz-credential"].startswith("AKIDEXAMPLE/")
    assert request["x-amz-credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert request["x-amz-expires"] == "900"
    assert len(request["x-amz-signature"]) == 64
