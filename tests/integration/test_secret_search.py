"""The search for secrets finds them in every form and in compressed files, those of Spark among them."""

import base64
import io
import json
import secrets
from collections.abc import Callable
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.kit.secret_search import SecretSearch, pieces_of_text
from tests.kit.secured import new_password

PASSWORD = new_password()
TOKEN = ".".join(base64.urlsafe_b64encode(secrets.token_bytes(256)).rstrip(b"=").decode() for _ in range(3))
# Too much for one block of any codec, and random, so that nothing is left as it is.
NOISE = base64.b64encode(secrets.token_bytes(200_000)).decode()


def found(content: bytes) -> set[str]:
    search = SecretSearch({"a password": pieces_of_text(PASSWORD)}, [TOKEN])
    search.search("here", content)
    return {each.partition(" in ")[0] for each in search.found}


def table(text: str) -> pa.Table:
    return pa.table({"n": [1, 2, 3], "text": [NOISE, text, None], "nested": [[{"x": text}], [], None]})


def parquet(codec: str) -> Callable[[str], bytes]:
    def write(text: str) -> bytes:
        file = io.BytesIO()
        pq.write_table(table(text), file, compression=codec)
        return file.getvalue()

    return write


def arrow(codec: str, new: Callable[..., pa.ipc.RecordBatchFileWriter]) -> Callable[[str], bytes]:
    def write(text: str) -> bytes:
        file = io.BytesIO()
        content = table(text)
        with new(file, content.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_table(content)
        return file.getvalue()

    return write


def in_base64(after: int) -> Callable[[str], bytes]:
    return lambda text: base64.b64encode(b"x" * after + text.encode() + b"yz")


def compressed(codec: str) -> Callable[[str], bytes]:
    return lambda text: bytes(pa.compress(f"{text}{NOISE}".encode(), codec, asbytes=True))


TEXTS: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "in JSON": lambda text: json.dumps({"of": text}).encode(),
    "in a URL": lambda text: quote(text, safe="").encode(),
    **{f"in base64, after {n}": in_base64(n) for n in range(3)},
}
FILES: dict[str, Callable[[str], bytes]] = {
    **{f"Parquet with {codec}": parquet(codec) for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")},
    **{f"an Arrow file with {codec}": arrow(codec, pa.ipc.new_file) for codec in ("zstd", "lz4")},
    **{f"an Arrow stream with {codec}": arrow(codec, pa.ipc.new_stream) for codec in ("zstd", "lz4")},
    **{codec: compressed(codec) for codec in ("gzip", "zstd", "lz4")},
}


@pytest.mark.parametrize("form", [*TEXTS, *FILES])
def test_a_secret_is_found(form: str) -> None:
    write = {**TEXTS, **FILES}[form]
    assert found(write(PASSWORD)) == {"a password"}
    assert found(write(TOKEN)) == {"a token"}
    assert found(write("nothing")) == set()


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy"])
def test_a_secret_is_found_in_what_spark_has_compressed(spark: SparkSession, codec: str) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None

    def by_spark(text: str) -> bytes:
        made = jvm.java.io.ByteArrayOutputStream()
        codecs = getattr(jvm.org.apache.spark.io, "CompressionCodec$").__getattr__("MODULE$")
        stream = codecs.createCodec(spark.sparkContext._jsc.sc().conf(), codec).compressedOutputStream(made)
        stream.write(text.encode())
        stream.close()
        return bytes(made.toByteArray())

    # Among text that compresses well, so that it is not there as it is.
    content = by_spark(f"{NOISE} {PASSWORD * 9} {TOKEN * 9} {NOISE}")
    assert found(content) == {"a password", "a token"}
    assert found(by_spark(NOISE)) == set()
    assert found(content[: len(content) // 2]) <= {"a password", "a token"}, "a file that is still being written"
