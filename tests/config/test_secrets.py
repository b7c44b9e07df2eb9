import pickle
from pathlib import Path

import pytest

from tests.config.written import SMALLEST
from warren.config import read
from warren.config.load import Config
from warren.config.secrets import Secret
from warren.errors import SecretError

ENVIRONMENT = {"PASSWORD": "p4ss", "HOST": "example.com", "TRICKY": "file:/etc/passwd"}


def read_with(config_dir: Path, text: str) -> tuple[Config | None, list[str]]:
    (config_dir / "burrow.toml").write_text(SMALLEST + text)
    config, findings = read(config_dir, ENVIRONMENT)
    return config, findings.mistakes


def password_of(config_dir: Path, written: str) -> Secret:
    config, mistakes = read_with(config_dir, f"[sasl.x]\nusername = \"u\"\npassword = '{written}'")
    assert config is not None, mistakes
    secret = config.sasl["x"].password
    assert secret is not None
    return secret


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain", "plain"),
        ("pa$$word", "pa$$word"),
        ("$PASSWORD", "$PASSWORD"),
        ("${1}", "${1}"),
        ("${PASSWORD}", "p4ss"),
        ("a-${PASSWORD}-${HOST}", "a-p4ss-example.com"),
        ("${TRICKY}", "file:/etc/passwd"),
    ],
)
def test_a_secret_may_have_variables_of_the_environment(tmp_path: Path, written: str, expected: str) -> None:
    assert password_of(tmp_path, written).reveal() == expected


@pytest.mark.parametrize("content", ["hush", "hush\n", "hush\r\n"])
def test_a_secret_may_be_in_a_file_without_its_last_newline(tmp_path: Path, content: str) -> None:
    (tmp_path / "password").write_bytes(content.encode())
    # The path begins at the directory of burrow.toml.
    assert password_of(tmp_path, "file:password").reveal() == "hush"


def test_the_file_of_a_secret_is_read_at_each_use(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    secret = password_of(tmp_path, f"file:{file}")
    file.write_text("second \n")
    assert secret.reveal() == "second "
    file.unlink()
    with pytest.raises(SecretError, match=r"password cannot be read: No such file or directory"):
        secret.reveal()


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("${NOT_SET}", "the environment variable NOT_SET is not set"),
        ("file:nowhere", "nowhere cannot be read: No such file or directory"),
        ("file:.", "cannot be read: Is a directory"),
        ("file:binary", "binary cannot be read: it is not UTF-8 text"),
    ],
)
def test_a_missing_variable_or_file_is_a_mistake(tmp_path: Path, written: str, why: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    _, (mistake,) = read_with(tmp_path, f'[sasl.x]\nusername = "u"\npassword = "{written}"')
    assert "[sasl.x] password = (not shown): " in mistake
    assert mistake.endswith(why)


def test_every_secret_key_takes_variables_and_files_and_no_other_key_does(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    config, mistakes = read_with(
        tmp_path,
        """
[notifier.hook]
class-name = "slack"
url-open = "https://${HOST}/hook"
headers = { Authorization = "file:token" }
group-allowlist = "${HOST}"
[sink.lake]
class-name = "lake"
path = "/lake"
spark-conf = { "spark.hadoop.fs.s3a.secret.key" = "${PASSWORD}", "spark.sql.warehouse.dir" = "file:/warehouse" }
[client-profile.p]
client-id = "${HOST}"
[client-profile.p.librdkafka]
ssl.keystore.password = "file:token"
[client-profile.p.java]
"ssl.provider" = "${PASSWORD}"
""",
    )
    assert config is not None, mistakes
    hook, profile = config.notifiers["hook"], config.client_profiles["p"]
    assert (hook.url_open, hook.headers) == ("https://example.com/hook", {"Authorization": "t0ken"})
    assert (hook.group_allowlist, profile.client_id) == ("${HOST}", "${HOST}")
    assert profile.librdkafka["ssl.keystore.password"].reveal() == "t0ken"
    assert profile.java["ssl.provider"].reveal() == "p4ss"
    lake = config.sinks["lake"]
    assert getattr(lake, "spark_conf") == {  # noqa: B009 - of this class of sinks
        "spark.hadoop.fs.s3a.secret.key": "p4ss",
        "spark.sql.warehouse.dir": "file:/warehouse",
    }


def test_a_secret_shows_itself_nowhere_but_on_request() -> None:
    secret = Secret("hush")
    assert "hush" not in f"{secret} {secret!r} {[secret]} {Config({}, {})!r}"
    assert pickle.loads(pickle.dumps(secret)) == secret, "the processes of a Warren give it to each other"
