"""A Spark session whose JVM is killed, or stops, in the middle of a query: the next query has a new one."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import logging, os, signal, sys, threading
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.spark.session import start_session
from warren.spark.supervised import SparkDied, SparkNotStarted, SupervisedSpark

logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s", stream=sys.stdout)
is_java_gone = False

def start():
    if is_java_gone:
        raise OSError("no Java")
    return start_session("local[1]", fetch_jars(SPARK_CONNECTOR), java_home(), "512m")

spark = SupervisedSpark(start, patience_s=600.0)
pids = []

def count(session):
    return session.range(10).mapInArrow(lambda batches: batches, "id long").count()

def with_signal(number, times=1):
    def query(session):
        pids.append(session.sparkContext._gateway.proc.pid)
        if len(pids) <= times:
            threading.Timer(0.5, os.kill, (pids[-1], number)).start()
            session.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 60000L)").collect()
        return count(session)
    pids.clear()
    return query

assert spark.run(with_signal(0, times=0)) == 10
for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP), ("killed", signal.SIGKILL)):
    query = with_signal(number)
    spark._patience_s = 600.0 if name == "killed" else 30.0
    try:
        spark.run(query)
    except SparkDied:
        print(name)
    if len(pids) == 1 and name == "stopped":
        assert spark.run(query) == 10
        assert len(set(pids)) == 2, pids
        print("a new one: ok")
is_java_gone = True
try:
    spark.run(count)
except SparkNotStarted as error:
    print("not started:", error)
is_java_gone = False
assert spark.run(count) == 10
try:
    spark.run(lambda session: session.sql("SELECT * FROM nowhere"))
except Exception as error:
    print("other errors:", type(error).__name__)
spark.stop()
print("all is well")
"""


@pytest.mark.timeout(900)
def test_the_next_query_has_a_new_jvm(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=800)
    out = ended.stdout
    assert out.strip().endswith("all is well"), out + ended.stderr
    lines = out.splitlines()
    assert (lines.count("killed"), lines.count("stopped")) == (2, 1)
    for said in ("a new one: ok", "other errors: AnalysisException"):
        assert said in out
    assert "not started: a new JVM for Spark cannot be started: no Java" in out
    assert out.count("Spark's JVM has died (exit code -9); a new one is started") == 3
    assert out.count("Spark has not finished a query in 30 s: its JVM") == 1
    # py4j may log the trace of the call that was cut off, once per death.
    assert (out + ended.stderr).count("Traceback") <= 2 * 3
