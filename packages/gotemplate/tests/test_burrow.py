"""Messages in the names of Burrow, and the little that Python asks of them."""

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from gotemplate import TemplateError, parse
from gotemplate.burrow import KnownLag, StatusConstant
from gotemplate.burrow_functions import HELPERS
from gotemplate.clock import Time
from packages.gotemplate.tests.messages import to_message, to_time
from warren.domain.status import Status

RESULT = {
    "cluster": "c",
    "group": "g",
    "status": 2,
    "complete": 0.7,
    "partitions": [],
    "partition_count": 0,
    "maxlag": None,
    "totallag": 0,
}
EMPTY = {"Cluster": "c", "Group": "g", "ID": "", "Start": [], "Extras": {}, "Result": RESULT}


@pytest.mark.parametrize("status", list(Status))
def test_a_status_reads_as_its_word(status: Status) -> None:
    assert StatusConstant(status).String() == status.name
    assert int(StatusConstant(status)) == status


def test_a_status_that_does_not_exist_is_unknown() -> None:
    assert StatusConstant(9).String() == StatusConstant(-1).String() == "UNKNOWN"


def test_a_share_is_a_single_float() -> None:
    text = '{{.Result.Complete}} {{eq .Result.Complete 0.7}} {{printf "%.9f" .Result.Complete}}'
    assert parse(text).render(to_message(EMPTY)) == "0.7 false 0.699999988"


def test_a_lag_is_a_number_in_json() -> None:
    assert parse("{{jsonencoder .}} {{.}}", functions=HELPERS).render(KnownLag(5)) == "5 {5}"


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2024, 2, 29, 12, 34, 56, 789_000, UTC), "2024-02-29 12:34:56.789 +0000 UTC"),
        (datetime(1969, 12, 31, 23, 59, 59, 1, UTC), "1969-12-31 23:59:59.000001 +0000 UTC"),
        (
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30), "NST")),
            "2024-01-01 00:00:00 -0330 NST",
        ),
        (datetime.min.replace(tzinfo=UTC), "0001-01-01 00:00:00 +0000 UTC"),
    ],
)
def test_a_time_is_made_of_a_datetime(moment: datetime, written: str) -> None:
    assert Time.from_datetime(moment).String() == written


def test_the_first_time_is_no_time() -> None:
    assert Time.from_datetime(datetime.min.replace(tzinfo=UTC)).IsZero()
    assert to_time([]).IsZero()


def test_a_time_beyond_the_calendar_is_an_error() -> None:
    with pytest.raises(TemplateError, match="error calling Format: a time beyond the calendar"):
        parse('{{.Format "2006"}}').render(Time(10**24, "UTC"))
    with pytest.raises(TemplateError, match="a time beyond the calendar"):
        parse("{{.}}").render(Time(10**24, "UTC"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n{{.Id}}", "template: open.tmpl:2: can't evaluate field Id in type struct { Cluster string; "),
        ("a\n\n{{if}}", "template: open.tmpl:3: missing value for if"),
        ("{{nope}}", 'template: open.tmpl:1: function "nope" not defined'),
        ("{{add 1 .Cluster}}", "template: open.tmpl:1: wrong type for value; expected int; got string"),
        ("{{divide 1 0}}", "template: open.tmpl:1: error calling divide: "),
        ("{{.Result.Maxlag.Topic}}", "template: open.tmpl:1: nil pointer evaluating *protocol.PartitionStatus.Topic"),
    ],
)
def test_an_error_says_where_and_what(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        parse(text, "open.tmpl", HELPERS).render(to_message(EMPTY))
    assert str(raised.value).startswith(message)


def test_an_error_survives_the_way_between_processes() -> None:
    error = TemplateError("open.tmpl", 3, "something")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_template_renders_the_same_again() -> None:
    template = parse("{{$x := .Group}}{{$x}}{{range 3}}{{$x = .}}{{end}}{{$x}}")
    assert [template.render(to_message(EMPTY)) for _ in range(2)] == ["g2", "g2"]
