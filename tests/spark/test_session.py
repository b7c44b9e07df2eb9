"""The Spark session: what the configuration says reaches it, and nobody else."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.spark.session import start_session

conf = {
    "spark.hadoop.fs.s3a.secret.key": "hush: #a=b \\\\ \\n é",
    "spark.sql.shuffle.partitions": "7",
    "spark.shuffle.compress": "true",
}
spark = start_session("local[1]", fetch_jars(SPARK_CONNECTOR), java_home(), "512m", conf)
jvm = spark.sparkContext._gateway.proc.pid
for pid in (jvm, "self"):
    seen = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"hush" not in seen, seen
assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
assert spark.sparkContext.getConf().get("spark.shuffle.compress") == "true"
held = spark._jsparkSession.sessionState().newHadoopConf().get("fs.s3a.secret.key")
assert held == conf["spark.hadoop.fs.s3a.secret.key"].strip(), repr(held)
print("all is well")
"""


def test_settings_reach_spark_and_are_on_no_command_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip().endswith("all is well"), ended.stderr
