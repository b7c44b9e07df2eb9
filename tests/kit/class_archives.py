"""Makes the class-data archives of Kafka and Spark before the tests, which start some fifty JVMs of them."""

from concurrent.futures import ThreadPoolExecutor

from warren.demo.broker import Kafka
from warren.spark.class_archive import make_archive


def stop_a_broker() -> None:
    """Start a broker and stop it, by which the first one makes Kafka's archive."""
    with Kafka():
        pass


if __name__ == "__main__":
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(stop_a_broker), pool.submit(make_archive)]:
            made.result()
