"""The schema as one value: what it refuses, what it shows, and what it lets out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from dpsyn.accounting import PrivacyUnit
from dpsyn.errors import SchemaError
from dpsyn.schema import (
    Boolean,
    Categorical,
    Datetime,
    Derive,
    Identifier,
    Impossible,
    Integer,
    JointAttribute,
    Open,
    Order,
    Real,
    Schema,
    Sum,
    Total,
    UnitDeclaration,
    Value,
    canonical_text,
)
from tests.strategies import schemas

PERSON = Identifier(name="person")
SEX = Categorical(name="sex", values=("F", "M"))
AGE = Integer(name="age", low=0, high=120)
ADULT = Boolean(name="adult")
JOB = Open(name="job")
FROM, TO = (Datetime(name=name, start="2016-01-01", end="2016-12-31") for name in ("from", "to"))
WAGE, RENT, INCOME = (Real(name=name, low=0.0, high=1e6, decimals=2) for name in ("wage", "rent", "income"))
ALL = (PERSON, SEX, AGE, ADULT, JOB, FROM, TO, WAGE, RENT, INCOME)
COMES_OF_AGE = Derive(name="adult", source="age", mapping=(("0..17", False), ("18..120", True)))


def refusal(**fields: Any) -> SchemaError:
    """The error that a schema with some fields ends in."""
    with pytest.raises(SchemaError) as caught:
        Schema(**{"attributes": ALL, **fields})
    return caught.value


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=30)
@given(schemas())
def test_measured_attributes_are_neither_identifiers_nor_derived(schema: Schema) -> None:
    measured = {attribute.name for attribute in schema.measured_attributes}

    derived = {derive.name for derive in schema.derive}
    identifiers = {attribute.name for attribute in schema if isinstance(attribute, Identifier)}
    assert measured == set(schema.names) - derived - identifiers


@settings(max_examples=30)
@given(schemas())
def test_a_private_table_needs_the_measured_columns_and_the_units_id(schema: Schema) -> None:
    needed = {attribute.name for attribute in schema.measured_attributes} | (
        {schema.privacy_unit.id} if schema.privacy_unit else set()
    )

    assert list(schema.columns) == [name for name in schema.names if name in needed]


@settings(max_examples=30)
@given(schemas())
def test_schemas_are_hashable_and_cannot_be_changed(schema: Schema) -> None:
    with pytest.raises(AttributeError):
        schema.dataset = "else"  # type: ignore[misc]

    assert {schema: 1}[schema] == 1


def test_lists_become_tuples_so_that_a_schema_cannot_change_under_its_users() -> None:
    listed: Any = Schema(
        attributes=[  # type: ignore[arg-type]
            Categorical(name="sex", values=["F", "M"], missing=["-"]),  # type: ignore[arg-type]
            Integer(name="age", low=0, high=120, bins=[0, 18], spikes=[99]),  # type: ignore[arg-type]
            ADULT,
        ],
        derive=[Derive(name="adult", source="age", mapping=[["0..17", False]], otherwise=True)],  # type: ignore
        measure_together=[JointAttribute(name="x", attributes=["sex", "age"])],  # type: ignore[arg-type]
        rules=[Impossible(where=[["sex", ["F"]]])],  # type: ignore
    )

    again = Schema.from_yaml(listed.to_yaml())

    assert again == listed
    assert hash(again) == hash(listed)


def test_attributes_are_looked_up_by_name() -> None:
    schema = Schema(attributes=(SEX, AGE))

    assert schema["age"] is AGE
    assert "age" in schema
    assert "job" not in schema
    assert list(schema) == [SEX, AGE]
    with pytest.raises(SchemaError, match="there is no attribute 'job'; there are sex, age"):
        schema["job"]


def test_a_replaced_attribute_keeps_its_position() -> None:
    schema = Schema(attributes=(SEX, JOB, AGE), dataset="people")
    discovered = JOB.to_categorical(["cook"])

    again = schema.replace_attribute(discovered)

    assert again.attributes == (SEX, discovered, AGE)
    assert again.dataset == "people"
    assert schema["job"] is JOB


def test_replacing_an_attribute_that_is_not_there_is_refused() -> None:
    schema = Schema(attributes=(SEX,))

    with pytest.raises(SchemaError, match="there is no attribute 'age'"):
        schema.replace_attribute(AGE)


def test_a_replaced_attribute_must_fit_the_relations() -> None:
    schema = Schema(attributes=(AGE, ADULT), derive=(COMES_OF_AGE,))

    with pytest.raises(SchemaError, match="120 is outside 0 … 99"):
        schema.replace_attribute(Integer(name="age", low=0, high=99))


def test_conditions_on_open_values_are_checked_once_they_are_discovered() -> None:
    schema = Schema(attributes=(JOB, SEX), rules=(Impossible(where=(("job", "pope"), ("sex", "F"))),))

    with pytest.raises(SchemaError, match="'pope' is not a value of 'job'"):
        schema.replace_attribute(JOB.to_categorical(["cook"]))


# ── what a release may use ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=30)
@given(schemas())
def test_entries_taken_from_the_data_are_refused_by_a_release(schema: Schema) -> None:
    stated = [*schema.attributes, *schema.derive, *schema.rules]
    from_data = sum(statement.provenance == "data" for statement in stated)

    assert len(schema.unapproved_statements()) == from_data
    if from_data:
        with pytest.raises(SchemaError, match="taken from the data"):
            schema.require_public()
    else:
        schema.require_public()


def test_the_refusal_explains_the_leak_and_how_to_approve_the_entry() -> None:
    schema = Schema(
        attributes=(SEX, Integer(name="age", low=0, high=97, provenance="data"), ADULT),
        derive=(Derive(name="adult", source="sex", mapping=(), otherwise=True, provenance="data"),),
        rules=(Total(count=5), Total(count=5, provenance="data")),
    )

    with pytest.raises(SchemaError) as caught:
        schema.require_public()

    message = str(caught.value)
    assert message.startswith("attribute 'age', derive 'adult', rule 2: taken from the data (provenance: data)")
    assert 'dpsyn schema approve schema.yaml ATTRIBUTE... --because "code book 2024"' in message
    assert "kind: open; a release discovers its values privately" in message
    assert "97" not in message


def test_the_refusal_lists_five_and_counts_the_rest() -> None:
    attributes = tuple(Boolean(name=f"b{number}", provenance="data") for number in range(8))

    with pytest.raises(SchemaError, match="attribute 'b4' and 3 more: taken from the data"):
        Schema(attributes=attributes).require_public()


# ── validity ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "phrase", "path"),
    [
        ({"attributes": ()}, "at least one attribute", ("attributes",)),
        ({"attributes": (SEX, AGE, SEX)}, "attribute 'sex' is described twice", ("attributes", "sex")),
        ({"attributes": (PERSON,)}, "no attribute is left to measure", ("attributes",)),
        ({"expected_size": 0}, "expected_size is 0; it must be at least 1", ("expected_size",)),
        ({"expected_size": -5}, "expected_size is -5; it must be at least 1", ("expected_size",)),
        (
            {"privacy_unit": UnitDeclaration(id="nobody")},
            "'nobody' must be of kind identifier",
            ("privacy_unit", "id"),
        ),
        (
            {"privacy_unit": UnitDeclaration(id="age")},
            "'age' must be of kind identifier",
            ("privacy_unit", "id"),
        ),
    ],
)
def test_an_invalid_schema_is_refused(fields: dict[str, Any], phrase: str, path: tuple[str, ...]) -> None:
    error = refusal(**fields)

    assert phrase in str(error)
    assert error.path == path


@pytest.mark.parametrize(
    ("fields", "phrase"),
    [
        ({"name": "x"}, "there is no attribute 'x'"),
        ({"source": "x"}, "there is no attribute 'x'"),
        ({"source": "job"}, "'job' has no public list of values, so it cannot be used here"),
        ({"source": "person"}, "'person' has no public list of values"),
        ({"name": "job"}, "'job' has no public list of values"),
        ({"mapping": (("0..17", False),)}, "leaves out 103 values of 'age'; list them, or add otherwise: VALUE"),
        ({"mapping": (("0..17", False), ("18..121", True))}, "121 is outside 0 … 120"),
        ({"mapping": (("0..17", "child"), ("18..120", True))}, "true or false, not 'child'"),
        ({"otherwise": "perhaps"}, "true or false, not 'perhaps'"),
    ],
)
def test_a_derivation_that_does_not_fit_is_refused(fields: dict[str, Any], phrase: str) -> None:
    derive = Derive(**{"name": "adult", "source": "age", "mapping": COMES_OF_AGE.mapping, **fields})

    error = refusal(derive=(derive,))

    assert phrase in str(error)
    assert error.path[:2] == ("derive", derive.name)


def test_a_mapping_by_numbers_is_the_same_as_one_by_their_texts() -> None:
    code = Categorical(name="code", codes=2)
    derive = Derive(name="adult", source="code", mapping=((0, False), (1.0, True)))
    schema = Schema(attributes=(code, ADULT), derive=(derive,))

    again = Schema.from_yaml(schema.to_yaml())

    assert again == schema
    assert derive.mapping == (("0", False), ("1", True))


@pytest.mark.parametrize("fields", [{"codes": 2_000}, {"values": tuple(f"v{number}" for number in range(2_000))}])
def test_a_long_mapping_looks_at_every_value_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    detailed = Categorical(name="detailed", **fields)
    general = Categorical(name="general", codes=100)
    mapping = tuple((label, number % 100) for number, label in enumerate(detailed.labels()))
    derive = Derive(name="general", source="detailed", mapping=mapping)
    looks: Counter[Value] = Counter()

    def counted(value: Value) -> str:
        looks[value] += 1
        return canonical_text(value)

    monkeypatch.setattr("dpsyn.schema.attributes.canonical_text", counted)

    Schema(attributes=(detailed, general), derive=(derive,))

    assert looks.total() < 10 * len(mapping)  # a walk through all values for each would be four million


def test_a_value_is_mapped_once() -> None:
    with pytest.raises(SchemaError, match="the value '1' is mapped twice"):
        Derive(name="adult", source="code", mapping=((1, False), ("1", True)))


@pytest.mark.parametrize(("rule", "fields"), [(Impossible, {}), (Total, {"count": 3})])
def test_an_attribute_has_one_condition_in_a_rule(rule: Any, fields: dict[str, int]) -> None:
    with pytest.raises(SchemaError, match="two conditions on 'sex'; combine them into one"):
        rule(where=(("sex", "F"), ("age", 3), ("sex", "M")), **fields)


def test_an_attribute_is_derived_once_and_never_from_a_derived_one() -> None:
    chain = Derive(name="sex", source="adult", mapping=(), otherwise="F")

    assert "'adult' is derived twice" in str(refusal(derive=(COMES_OF_AGE, COMES_OF_AGE)))
    assert "'sex' is derived from 'adult', which is itself derived" in str(refusal(derive=(COMES_OF_AGE, chain)))


@pytest.mark.parametrize(
    ("joint", "phrase"),
    [
        ([JointAttribute(name="x", attributes=("sex",))], "'x' needs at least two different attributes"),
        ([JointAttribute(name="x", attributes=("sex", "sex"))], "'x' needs at least two different attributes"),
        ([JointAttribute(name="x", attributes=())], "'x' needs at least two different attributes"),
        ([JointAttribute(name="x", attributes=("sex", "y"))], "there is no attribute 'y'"),
        (
            [JointAttribute(name="age", attributes=("sex", "age"))],
            "'age' is an attribute; give the joint attribute another name",
        ),
        ([JointAttribute(name="", attributes=("sex", "age"))], "a joint attribute has an empty name; give it one"),
        (
            [JointAttribute(name="x", attributes=("sex", "age")), JointAttribute(name="x", attributes=("from", "to"))],
            "two joint attributes are named 'x'; rename one",
        ),
        (
            [JointAttribute(name="x", attributes=("sex", "person"))],
            "'person' is not measured, so it cannot be part of a joint attribute",
        ),
        (
            [JointAttribute(name="x", attributes=("sex", "adult"))],
            "'adult' is not measured, so it cannot be part of a joint attribute",
        ),
        (
            [JointAttribute(name="x", attributes=("sex", "age")), JointAttribute(name="y", attributes=("age", "from"))],
            "'y' uses an attribute that is part of another joint attribute",
        ),
    ],
)
def test_a_joint_attribute_that_does_not_fit_is_refused(joint: list[JointAttribute], phrase: str) -> None:
    error = refusal(measure_together=tuple(joint), derive=(COMES_OF_AGE,))

    assert phrase in str(error)
    assert error.path == ("measure_together", joint[-1].name)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("person", "'person' is not compared"),
        ("adult", "'adult' is not compared"),
        ("job", "'job' has no public list of values"),
        ("sex", "'sex' is named twice"),
    ],
)
def test_groups_by_an_attribute_without_known_groups_are_refused(name: str, phrase: str) -> None:
    error = refusal(groups=("sex", name), derive=(COMES_OF_AGE,))

    assert phrase in str(error)
    assert error.path == ("groups", 1)


@pytest.mark.parametrize(
    ("rule", "phrase", "path"),
    [
        (Impossible(where=()), "needs at least one condition", ()),
        (Impossible(where=(("x", 1),)), "there is no attribute 'x'", ()),
        (Impossible(where=(("age", 121),)), "121 is outside 0 … 120", ("where", "age")),
        (Impossible(where=(("age", "5..1"),)), "ends before it begins", ("where", "age")),
        (Impossible(where=(("sex", "F"), ("sex2", "F"))), "there is no attribute 'sex2'", ()),
        (Impossible(where=(("sex", ("F", "X")),)), "'X' is not a value of 'sex'; it has F, M", ("where", "sex")),
        (Impossible(where=(("sex", "missing"),)), "'missing' is not a value of 'sex'", ("where", "sex")),
        (Impossible(where=(("person", "x"),)), "'person' has no public list of values", ()),
        (Total(count=-1), "count is -1; it cannot be negative", ("count",)),
        (Total(count=10**20), "give at most 10,000,000,000", ("count",)),
        (Total(count=1, where=(("age", "old"),)), "'old' is not a number", ("where", "age")),
        (Order(attributes=("from",)), "at least two different attributes", ()),
        (Order(attributes=("from", "from")), "at least two different attributes", ()),
        (Order(attributes=("from", "age")), "compares numbers with numbers, dates with dates", ()),
        (Order(attributes=("sex", "adult")), "compares numbers with numbers, dates with dates", ()),
        (Order(attributes=("from", "x")), "there is no attribute 'x'", ()),
        (Sum(total="income", parts=()), "a sum needs parts, and the total must not be one of them", ()),
        (Sum(total="income", parts=("income", "rent")), "a sum needs parts, and the total must not be one", ()),
        (Sum(total="income", parts=("from", "rent")), "a sum needs attributes of kind integer or real", ()),
        (Sum(total="income", parts=("x",)), "there is no attribute 'x'", ()),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(rule: Any, phrase: str, path: tuple[str, ...]) -> None:
    error = refusal(rules=(Total(count=1), rule))

    assert phrase in str(error)
    assert error.path == ("rules", 1, *path)


def test_rules_list_the_attributes_they_mention() -> None:
    assert list(Impossible(where=(("sex", "F"), ("age", 3))).mentions()) == ["sex", "age"]
    assert list(Order(attributes=("from", "to")).mentions()) == ["from", "to"]
    assert list(Sum(total="income", parts=("wage", "rent")).mentions()) == ["income", "wage", "rent"]
    assert list(Total(count=1, where=(("sex", "F"),)).mentions()) == ["sex"]
    assert list(Total(count=1).mentions()) == []


def test_rules_that_fit_are_accepted() -> None:
    rules = (
        Order(attributes=("from", "to"), strict=True),
        Order(attributes=("age", "income")),
        Sum(total="income", parts=("wage", "rent")),
        Impossible(where=(("age", ("0..9", 120)), ("job", "anything"))),
        Total(count=0),
    )

    assert Schema(attributes=ALL, rules=rules).rules == rules


def test_a_privacy_unit_has_at_least_one_row() -> None:
    with pytest.raises(SchemaError, match="max_rows is 0; give at least 1"):
        UnitDeclaration(id="person", max_rows=0)


def test_a_schema_of_very_many_attributes_is_looked_up_and_checked_without_going_through_all_each_time() -> None:
    names = [f"a{number}" for number in range(20_000)]
    pairs = zip(names[::2], names[1::2], strict=True)
    schema = Schema(
        attributes=tuple(Boolean(name=name) for name in names),
        measure_together=tuple(JointAttribute(name=f"{one}+{two}", attributes=(one, two)) for one, two in pairs),
    )

    assert schema.columns == tuple(names)
    assert [schema[name].name for name in names] == names


def test_a_schema_is_coerced_from_itself_or_from_a_path(tmp_path: Path) -> None:
    schema = Schema(attributes=ALL)
    schema.save(tmp_path / "schema.yaml")

    assert Schema.coerce(schema) is schema
    assert Schema.coerce(tmp_path / "schema.yaml") == Schema.coerce(str(tmp_path / "schema.yaml")) == schema


@pytest.mark.parametrize("value", [3, {"attributes": ()}])
def test_anything_else_is_not_coerced_to_a_schema(value: object) -> None:
    with pytest.raises(
        SchemaError, match=f"a {type(value).__name__} was given; give a Schema, a draft of one, or the path"
    ):
        Schema.coerce(value)


@pytest.mark.parametrize(
    ("neighbors", "unit", "public"),
    [
        ("add-remove", None, False),
        ("replace", None, True),
        ("replace", UnitDeclaration(id="person"), False),
        ("add-remove", UnitDeclaration(id="person"), False),
    ],
)
def test_the_row_count_is_public_only_if_single_rows_are_replaced(
    neighbors: Any, unit: UnitDeclaration | None, public: bool
) -> None:
    schema = Schema(attributes=ALL, neighbors=neighbors, privacy_unit=unit)

    assert schema.row_count_is_public == public
    assert PrivacyUnit(neighbors=neighbors, id=unit.id if unit else "").row_count_is_public == public


@given(schemas())
def test_open_attributes_are_those_that_are_measured_and_have_no_codes(schema: Schema) -> None:
    assert schema.open_attributes == tuple(a for a in schema.measured_attributes if not a.coded)
