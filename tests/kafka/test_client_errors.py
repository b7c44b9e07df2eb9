import pytest

from warren.kafka.client_errors import explain

AT = "sasl_ssl://10.0.0.1:9093/bootstrap: "


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            f"{AT}SASL authentication error: Authentication failed during authentication",
            "10.0.0.1:9093: the broker ref",
        ),
        ("SaslAuthenticationException: Authentication failed: Invalid username or password", "the broker refuses"),
        (f"{AT}Receive failed: SSL alert number 42: ssl/tls alert bad certificate", "Warren's own certificate"),
        ("SSLHandshakeException: Received fatal alert: certificate_required", "Warren's own certificate"),
        ("PKIX path building failed\nCaused by: CertificateExpiredException: NotAfter", "has expired"),
        ("CertificateException: No subject alternative names matching IP address 10.0.0.1 found", "not for the host"),
        ("Not authorized to access topics: [__consumer_offsets]", "may not read the topic __consumer_offsets: grant"),
        ("Not authorized to access group: warren-reader-a", "may not use the group warren-reader-a: grant"),
        ("OAUTHBEARER token refresh failed", "no token could be had from the token endpoint"),
    ],
)
def test_what_is_wrong_and_what_to_do_is_one_sentence(message: str, words: str) -> None:
    sentence = explain(message)
    assert sentence is not None
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "message", ["", "10.0.0.1:9092/0: Connect to ipv4#10.0.0.1:9092 failed: Connection refused", "1/1 brokers are down"]
)
def test_an_error_that_speaks_for_itself_is_left_alone(message: str) -> None:
    assert explain(message) is None
