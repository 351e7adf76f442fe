"""Delimited text: what is a number, what is a name, and where something is wrong."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer import config_context, progress
from mercer.data.files import FileError, MissingValues, read_table


@pytest.fixture
def read(tmp_path):
    """Return a function that reads text as a CSV file."""

    def function(text, name="x.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path, **options)

    return function


def rows(table):
    return np.asarray(table.source.collect()).tolist()


class AtFirst(progress.Listener):
    """Does something when the first part of a file has been read."""

    def __init__(self, action):
        self.actions = [action]

    def begin(self, label, total):
        return label

    def advance(self, handle, steps):
        if handle == "read" and self.actions:
            self.actions.pop()()

    def end(self, handle):
        pass


@pytest.mark.parametrize("change", ["shorter", "other digits", "gone"])
def test_a_file_that_changes_while_it_is_read(tmp_path, change):
    """It is read in chunks, into memory or a temporary file: what is seen of it may be two."""
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1.25,2.5\n" * 900)
    text = path.read_text()
    listener = AtFirst(
        {
            "shorter": lambda: path.write_text(text[: len(text) // 9 * 3]),
            "other digits": lambda: path.write_text(text.replace("2.5", "9.5")),
            "gone": path.unlink,
        }[change]
    )
    message = r"x\.csv (changed|was removed) while it was being read"
    with progress.session(listener), pytest.raises(FileError, match=message):
        read_table(path)
    assert not listener.actions


PLAIN = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\n\na,b\n\n1,2\n\n3,4\n\n",
        "a;b\n1;2\n3;4\n",
        "a\tb\n1\t2\n3\t4\n",
        "a|b\n1|2\n3|4\n",
        ' a , b\n 1 ,2\n"3", 4 \n',
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
    ],
)
def test_the_same_table_in_many_spellings(read, text):
    table = read(text)
    assert rows(table) == PLAIN
    assert table.source.names == ["a", "b"]
    assert table.dropped == ()


def test_what_is_a_number(read):
    table = read(
        "int,float,flag,late,inf,big,text,date,hex,thousand,mixed,none\n"
        '1,-.5e3,true,,inf,1e308,x,2020-01-01,0x10,"1,000",true,\n'
        "2,4.,FALSE,7,-Infinity,99999999999999999999,y,2020-01-02,0x11,2,1,\n",
        missing="keep",
    )
    expected = [[1, -500, 1, np.nan, np.inf, 1e308, 1], [2, 4, 0, 7, -np.inf, 1e20, 1]]
    assert_array_equal(rows(table), expected)
    assert table.source.names == ["int", "float", "flag", "late", "inf", "big", "mixed"]
    assert table.dropped == ("text", "date", "hex", "thousand", "none")
    assert table.missing == {"late": 1}


@pytest.mark.parametrize(
    "mark", ["", "NA", "NaN", "nan", "null", "NULL", "None", "N/A", '""', "<NA>"]
)
def test_what_is_missing(read, mark):
    text = f"a,b\n1,2\n{mark},4\n"
    assert read(text, missing="keep").missing == {"a": 1}
    with pytest.raises(MissingValues, match=r"x\.csv: 1 value is missing: 1 of 'a'.*impute") as e:
        read(text)
    assert e.value.missing == {"a": 1}


def test_all_columns_with_missing_values_are_counted(read):
    text = "a,b,c\n1,NA,1\nNA,NA,1\n"
    with pytest.raises(MissingValues, match=r"3 values are missing: 2 of 'b', 1 of 'a'\."):
        read(text, columns=["a", "b", "c"])


# The header.


def test_a_file_without_names(read):
    with pytest.warns(UserWarning, match="contains only numbers and was read as data"):
        table = read("1,2\n3,4\n")
    assert table.source.names is None
    assert rows(table) == PLAIN
    with pytest.warns(UserWarning, match="was read as data, not as column names"):
        table = read("9,1,2,5\n9,3,4,6\n", columns=["1-2"], label="3")
    assert rows(table) == PLAIN
    assert_array_equal(table.extra["3"], [5, 6])


def test_numbers_from_zero_are_the_names_that_pandas_writes(read):
    frame = pd.DataFrame(PLAIN)
    with pytest.warns(UserWarning, match="0 to 1, was read as column names"):
        table = read(frame.to_csv(index=False))
    assert table.source.names == ["0", "1"]
    assert rows(table) == PLAIN


def test_the_index_that_pandas_and_r_write_is_no_feature(read):
    table = read(pd.DataFrame(PLAIN, columns=["a", "b"]).to_csv())
    assert table.source.names == ["a", "b"]
    assert (table.dropped, table.id) == ((), "Unnamed: 0")
    assert table.extra["Unnamed: 0"].tolist() == [0, 1]
    table = read('"","a"\n"r1",5\n', keep=["Unnamed: 0"])
    assert table.extra["Unnamed: 0"].tolist() == ["r1"]


def test_a_delimiter_at_the_end_of_every_line(read):
    table = read("a,b,\n1,2,\n3,4,\n")
    assert rows(table) == PLAIN
    assert table.dropped == ("Unnamed: 2",)


# Which column does what.


def test_labels_weights_and_kept_columns_are_no_features(read):
    text = "id,a,w,b,class\n007,1,2,2,x\n008,3,1,4,y\n"
    table = read(text, label="class", weights="w", keep=["id"])
    assert rows(table) == PLAIN
    assert table.source.names == ["a", "b"]
    assert table.source.weights.tolist() == [2, 1]
    assert {name: list(values) for name, values in table.extra.items()} == {
        "class": ["x", "y"],
        "id": ["007", "008"],
    }


def test_columns_in_the_order_asked_for(read):
    table = read("a,b,c\n1,2,x\n3,4,y\n", columns=["b", "a"], keep=["a", "c"])
    assert rows(table) == [[2, 1], [4, 3]]
    assert table.extra["a"].tolist() == [1, 3]
    assert table.dropped == ()


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["0", "1"], [0, 1], "i"),
        (["0.5", "1"], [0.5, 1.0], "f"),
        (["2", "NA"], [2.0, np.nan], "f"),
        (["true", "false"], [True, False], "b"),
        (["NA", "x"], ["NA", "x"], "O"),
        (["", "x"], ["", "x"], "O"),
        (["01", "2"], ["01", "2"], "O"),
        # Identifiers keep their digits, which floats have no room for.
        (["9007199254740993", "9007199254740995"], [9007199254740993, 9007199254740995], "i"),
        (["9007199254740993", "NA"], ["9007199254740993", "NA"], "O"),
        (["12345678901234567890", "7"], ["12345678901234567890", "7"], "O"),
        (["NA"] * 2000 + ["5"], [np.nan] * 2000 + [5.0], "f"),
        (["<b>", "'é😀"], ["<b>", "'é😀"], "O"),
    ],
)
def test_values_of_a_label_column(read, values, expected, kind):
    text = "a,label\n" + "".join(f"1,{value}\n" for value in values)
    found = read(text, label="label").extra["label"]
    assert found.dtype.kind == kind
    assert_array_equal(found, expected)


# What is refused.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x\.csv is empty"),
        ("\n\r\n", r"x\.csv is empty"),
        ("a,b\n", "a header, but no rows"),
        ("a,b\nx,y\n", r"no numeric column, read with ','.*'a', 'b'"),
        ("a,a\n1,2\n", "more than once: 'a'. Column names must be unique"),
        ("a,b\n1,2\n3\n", "line 3: 1 fields, but the first line has 2"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4: 3 fields"),
        ("a,b\n1,2\n3,4,", "line 3: 3 fields"),
        ('a,b\n1,"x\ny"\n3,"z"\n4\n', "line 5: 1 fields"),
        ('a,b\n1,2\n3,"4\n5,6\n', "line 3: a quoted field is never closed"),
        (b"PAR1....", r"looks like a \.parquet"),
        ("a," + "b" * 200_000 + "\n1,2\n", "header cannot be read"),
    ],
)
def test_what_cannot_be_read(read, text, message):
    with pytest.raises(FileError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["heigth"]}, r"no column 'heigth': did you mean 'height'\?"),
        ({"columns": ["AGE"]}, "did you mean 'age'"),
        ({"label": "zzzz"}, "there are 'age', 'height', 'name', 'w'"),
        ({"keep": ["nam"]}, "did you mean 'name'"),
        ({"columns": ["name"]}, "line 2: column 'name' holds 'é', which is not a number"),
        ({"weights": "name"}, "line 2: column 'name' holds 'é', which is not a number"),
        ({"weights": "w"}, "1 weights of column 'w' are missing"),
        ({"columns": ["age"], "label": "age"}, "both in columns and the label"),
        ({"columns": []}, "no feature column is left"),
        ({"format": "doc"}, r"format='doc' is not known.*\.csv"),
        ({"missing": "drop"}, "'refuse' or 'keep'"),
    ],
)
def test_what_cannot_be_asked_for(read, options, message):
    with pytest.raises(ValueError, match=message):
        read("age,height,name,w\n1,2,é,\n3,4,b,1\n", **options)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_of_unicode(read, encoding):
    table = read("a,é\n1,ü\n".encode(encoding), label="é")
    assert (rows(table), table.extra["é"].tolist()) == ([[1.0]], ["ü"])


def test_a_byte_order_mark_of_utf_32(read):
    assert rows(read("\ufeffa,b\n1,2\n3,4\n".encode("utf-32-be"))) == PLAIN


def test_text_that_is_not_unicode(read):
    text = "é,b\n1,€\n".encode("cp1252")
    with pytest.warns(UserWarning, match=r"not UTF-8 \(byte 0xe9\) and was read as Windows-1252"):
        table = read(text, label="b")
    assert (table.source.names, table.extra["b"].tolist()) == (["é"], ["€"])


@pytest.mark.parametrize("text", ["a;b\n1,5;2\n", "a\tb\n1,5\t2\n", 'a;b\n"1,5";2e0\n'])
def test_decimal_commas(read, text):
    assert rows(read(text)) == [[1.5, 2.0]]


def test_decimal_commas_without_names(read):
    with pytest.warns(UserWarning, match="was read as data, not as column names"):
        assert rows(read("1,5;2,5\n0,5;2\n")) == [[1.5, 2.5], [0.5, 2.0]]


# What the first piece does not tell.


LONG = 30_000


def test_a_column_that_is_whole_at_first(read, small_pieces):
    text = "a,b\n" + "1,2\n" * LONG + "1.5,1e3\n"
    found = read(text).source
    assert found.shape == (LONG + 1, 2)
    assert_array_equal(found.take([0, LONG]), [[1, 2], [1.5, 1000]])


def test_a_column_that_turns_to_text(read, small_pieces):
    text = "a,b,c\n" + "1,2,3\n" * LONG + "1,x,4\n" + "1,2,3\n" * LONG
    with pytest.warns(UserWarning, match=rf"line {LONG + 2}: column 'b' holds 'x', but other"):
        table = read(text)
    assert table.source.names == ["a", "c"]
    assert table.dropped == ("b",)
    assert table.source.shape == (2 * LONG + 1, 2)
    assert_array_equal(table.source.take([0, LONG, 2 * LONG]), [[1, 3], [1, 4], [1, 3]])
    with pytest.raises(FileError, match=rf"line {LONG + 2}: column 'b' holds 'x'"):
        read(text, columns=["b"])


@pytest.mark.parametrize("late", ["5", "true", "", "x"])
@pytest.mark.parametrize("early", ["5", "true", "", "x"])
def test_the_pieces_make_no_difference(read, early, late):
    text = "a,b\n" + f"1,{early}\n" * LONG + f"1,{late}\n"
    found = []
    for memory in ("2MiB", "1GiB"):
        with config_context(memory=memory), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = read(text, missing="keep")
            found.append((table.source.names, table.dropped, table.missing, table.source.shape))
            last = np.asarray(table.source.take([0, LONG])).tolist()
            found[-1] += (str(last),)
    assert found[0] == found[1]
    numeric = "x" not in (early, late) and (early or late)
    assert found[0][0] == (["a", "b"] if numeric else ["a"])


def test_flags_in_one_file_and_padded_numbers_in_another(tmp_path):
    (tmp_path / "0.csv").write_text("a,b\n1,true\n")
    (tmp_path / "1.csv").write_text("a,b\n1, 5\n")
    table = read_table(tmp_path)
    assert (table.source.names, table.dropped) == (["a", "b"], ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "late",
    [
        "4,5,6",
        "4,x,6",
        "4,true,NA",
        '4,"5",6',
        '"4\n",5,""',
        "4, 5,6 ",
        "4,,",
        ",, ",
        "nan,-NaN,NAN\n-nan,+nan,nAn",
        "+1,.5e-3,5.\ninf,-Infinity,1e400\n0.1,123456789012345678,1e-400",
        "4,5,6\n\n7,8,9",
        "4,é,6",
        "4,5",
        "4,5,6,7",
        '4,5,"6',
    ],
)
def test_entries_are_the_same_numbers_whether_columns_are_parsed_or_read_as_text(
    read, small_pieces, late, end
):
    """With `na`, every column is read as text first."""
    text = "a,b,c\n" + "0.1,-2e5,\n0.30000000000000004,7,3\n" * (LONG // 2)
    text = (text + late + "\n" + "1,2,3\n" * LONG).replace("\n", end)
    found = []
    for na in ((), ["no entry"]):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            try:
                table = read(text, missing="keep", na=na)
                outcome = np.asarray(table.source.collect()).tobytes(), table.source.names
                found.append((*outcome, table.missing, table.dropped, dict(table.reasons)))
            except FileError as error:
                found.append(str(error))
        found.append([str(warning.message) for warning in record])
    assert found[:2] == found[2:]


def test_lines_across_pieces(read, small_pieces):
    with pytest.raises(FileError, match=rf"line {2 * LONG + 2}: 1 fields"):
        read("a,b\n" + '1,"x\ny"\n' * LONG + "3\n" + "1,2\n" * LONG)
    quoted = read("a,b\n" + '1,"x,\ny""z"\n' * LONG, label="b")
    assert quoted.source.shape == (LONG, 1)
    assert set(quoted.extra["b"]) == {'x,\ny"z'}


def test_a_quote_that_swallows_the_file(read, small_pieces):
    with pytest.raises(FileError, match=r"line 2 .*a quoted field is never closed"):
        read('a,b\n1,"' + "1,2\n" * 200_000)


def test_one_line_larger_than_a_piece(read, small_pieces):
    wide = 20_000
    text = ",".join(f"x{i}" for i in range(wide)) + "\n" + ",".join(["7.25"] * wide) + "\n"
    assert_array_equal(read(text).source.collect(), np.full((1, wide), 7.25))


# Against pandas.

numbers = st.floats(allow_nan=False, allow_infinity=False)
# pandas leaves a lone carriage return without quotes, and cannot read it back itself.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


@settings(max_examples=100, deadline=None)
@given(data=st.lists(st.tuples(numbers, texts, numbers), min_size=1, max_size=20))
def test_what_pandas_writes(tmp_path_factory, data):
    frame = pd.DataFrame(data, columns=["a", "t", "b"])
    path = tmp_path_factory.mktemp("pandas") / "x.csv"
    frame.to_csv(path, index=False)
    table = read_table(path, label="t", columns=["a", "b"])
    assert_array_equal(table.source.collect(), frame[["a", "b"]].to_numpy())
    values = table.extra["t"]
    if values.dtype == object:
        assert values.tolist() == frame["t"].tolist()


def test_of_two_delimiters_that_fit_alike_the_first_is_taken(tmp_path):
    (tmp_path / "x.csv").write_text("a,b;c\n1,5;2\n3,5;4\n")
    table = read_table(tmp_path / "x.csv")
    assert list(table.source.names) == ["a,b", "c"]
