"""Tests of the encoding of values."""

import contextlib
import datetime as dt
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.sandbox.wire.codec import MAX_DEPTH, Codec, WireError


def refuse(*_):
    raise WireError("opaque")


def pair():
    return Codec(refuse, refuse), Codec(refuse, refuse)


def cross(left, right, *values):
    changes, packed = json.loads(json.dumps(left.pack(values)))
    return right.unpack(changes, packed)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
)
hashable = st.integers() | st.text() | st.tuples(st.integers(), st.floats(allow_nan=False))
values = st.recursive(
    scalars,
    lambda s: (
        st.lists(s)
        | st.tuples(s, s)
        | st.dictionaries(hashable, s)
        | st.sets(hashable)
        | st.lists(s).map(deque)
        | st.binary().map(bytearray)
    ),
    max_leaves=20,
)


@given(values)
def test_values_arrive_equal_and_of_the_same_type(value):
    (arrived,) = cross(*pair(), value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *(1 << 70, -(1 << 5000), range(2, 9, 3), slice(1, None, 2), ..., NotImplemented),
        *(Counter("abca"), OrderedDict(b=1, a=2), deque([1, 2], maxlen=2)),
        *({1: "a"}.keys(), {1: "a"}.items(), Decimal("1.10"), Fraction(1, 3), -0.0, math.inf),
        *(dt.time(1, 2), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)),
        *("\ud800", "\0", {(1, 2): {3}}, {"a": [1, (2,)]}),
    ],
    ids=repr,
)
def test_each_tag_is_its_own_inverse(value):
    (arrived,) = cross(*pair(), value)
    assert arrived == value
    assert repr(arrived) == repr(value)


def test_nan_and_defaultdict_arrive():
    nan, table = cross(*pair(), math.nan, defaultdict(list, a=[1]))
    assert math.isnan(nan)
    table["b"].append(2)
    assert table == {"a": [1], "b": [2]}


def test_subclasses_arrive_as_their_builtin():
    class Same(list):
        def __eq__(self, other):
            return True

        __hash__ = None

    class Word(str):
        __slots__ = ()

    (items, word) = cross(*pair(), Same([1]), Word("x"))
    assert type(items) is list
    assert type(word) is str


def test_exceptions_arrive_as_builtins():
    class OddError(KeyError):
        pass

    (error,) = cross(*pair(), OddError("k"))
    assert type(error) is KeyError
    assert error.args == ("k",)


def test_aliases_and_cycles_survive():
    shared = [1]
    outer = [shared, shared]
    outer.append(outer)
    (arrived,) = cross(*pair(), outer)
    assert arrived[0] is arrived[1]
    assert arrived[2] is arrived


def test_a_container_that_crosses_back_is_the_same_object():
    left, right = pair()
    sent = {"a": [1]}
    (there,) = cross(left, right, sent)
    (back,) = cross(right, left, there)
    assert back is sent


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [3, 1, 2], lambda x: x.sort()),
        (lambda: {"a": 1}, lambda x: x.update(b=2)),
        (lambda: {"b": 1, "a": 2}, lambda x: x.update(b=x.pop("b"))),
        (lambda: {1}, lambda x: x.clear()),
        (lambda: bytearray(b"ab"), lambda x: x.extend(b"c")),
        (lambda: deque([1, 2]), lambda x: x.rotate()),
        (lambda: [[1], [2]], lambda x: x[1].append(3)),
        (lambda: Counter("ab"), lambda x: x.update("b")),
    ],
)
def test_changes_in_place_are_seen_on_the_other_side(make, change):
    left, right = pair()
    mine = make()
    (theirs,) = cross(left, right, mine)
    change(theirs)
    cross(right, left)
    change(expected := make())
    assert mine == expected
    assert list(mine) == list(expected)


def test_unreferenced_containers_are_no_longer_mirrored():
    left, right = pair()
    cross(left, right, [1], {2: [3]})
    kept = [4]
    cross(left, right, kept)
    right.forget(left.sweep())
    left.sweep()
    assert len(left._objects) == 1


def test_a_value_nested_too_deeply_is_refused_and_leaves_the_tables_equal():
    left, right = pair()
    deep = []
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    with pytest.raises(WireError):
        left.pack([deep])
    sent = [1]
    (there,) = cross(left, right, sent)
    (back,) = cross(right, left, there)
    assert back is sent


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda s: (
        st.lists(s)
        | st.dictionaries(st.text(), s)
        | st.dictionaries(
            st.sampled_from([*"tsfdlSiRbcrLqCODkvwexnFmTB", "dt", "td"]), s, max_size=1
        )
    ),
)


@given(json_values, json_values)
def test_malformed_messages_raise_only_wire_errors(changes, packed):
    codec, _ = pair()
    with contextlib.suppress(WireError):
        codec.unpack(changes, [packed])
