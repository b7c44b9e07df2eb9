"""The options of a scan reach Spark's Kafka source as they are, whatever a password is made of."""

import pytest
from pyspark.sql import SparkSession

from warren.sources.kafka_scan import to_java_options

HARD = ('a "\\=&%$;,/+b', " a b ", "\t\n\r\\", "#!:=", "\\u0041", "pässwörd-비밀", "")


@pytest.mark.parametrize("value", HARD)
def test_options_arrive_as_they_are(spark: SparkSession, value: str) -> None:
    options = {"kafka.sasl.jaas.config": value, "subscribe": "t"}
    made = to_java_options(spark, options).asCaseSensitiveMap()
    assert {key: made.get(key) for key in options} == options
    assert made.size() == len(options)
