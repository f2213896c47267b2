"""Option objects: frozen dataclasses that a user builds in Python, or sets on the command line by dotted paths.

A recipe, a synthesis method or a step-size decay is such an object. Its fields are plain values or further option
objects, so ``synthesis.decay.rate`` names one number inside a recipe. A field that takes one of several option
objects, such as ``synthesis: Gibbs | GUM | MCF``, is set by the object's ``name``: ``synthesis=gum``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from dpsyn.errors import InternalError, UserError, quote_argument
from dpsyn.suggestions import find_similar, suggest_names

_T = TypeVar("_T")
_P = ParamSpec("_P")

MAX_SAMPLED_ROWS = 10**12
"""The maximum number of rows that can be sampled; a larger number is taken for a mistake."""

_TYPE_NAMES: dict[Any, str] = {
    int: "whole number",
    float: "number",
    Fraction: "number",
    bool: "true|false",
    str: "text",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a recipe or a synthesis method.

    Attributes:
        path: its dotted path from the recipe, such as ``synthesis.decay.rate``.
        type: what it takes, in words.
        default: its default, as text.
        description: what it does and why.
    """

    path: str
    type: str
    default: str
    description: str


def text_option(
    default: Any,
    *,
    parse: Callable[[str], Any],
    type_words: str,
    to_data: Callable[[Any], Any] = str,
) -> Any:
    """A field whose value has a text form of its own, such as ``views=covering:2x8``.

    Args:
        default: the default of the field.
        parse: reads the text form; a UserError says what is wrong with it.
        type_words: what the text looks like, for lists of options.
        to_data: turns a value into plain data for JSON.
    """
    metadata = {"parse": parse, "type": type_words, "to_data": to_data}
    return dataclasses.field(default=default, metadata=metadata)


def check_options(target: Any, **minimums: float) -> None:
    """Refuse fields of the wrong type, numbers that are not finite, and numbers below a minimum.

    Call it in ``__post_init__``, so that an option object is valid from birth and nothing is spent on a wrong one.
    """
    hints = typing.get_type_hints(type(target))
    for field in dataclasses.fields(target):
        value, hint = getattr(target, field.name), hints[field.name]
        if not _fits(value, hint):
            raise UserError(
                f"{field.name} of {type(target).__name__} is {quote_argument(value)}; give {_advice(hint, field)}"
            )
        minimum = minimums.get(field.name, -math.inf)
        if any(number < minimum for number in (value if isinstance(value, tuple) else [value]) if _is_number(number)):
            raise UserError(
                f"{field.name} of {type(target).__name__} is {quote_argument(value)}; give at least {minimum:g}"
            )


def check_seed(seed: Any) -> None:
    """Refuse a seed that numpy would refuse later."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise UserError(f"the seed is {quote_argument(seed)}; give a whole number from 0")


def check_row_count(rows: Any) -> None:
    """Refuse what is no number of rows to sample."""
    if isinstance(rows, bool) or not isinstance(rows, Integral):
        raise UserError(f"the number of rows is {quote_argument(rows)}; give a whole number")
    if not 0 <= int(rows) <= MAX_SAMPLED_ROWS:
        raise UserError(f"the number of rows is {int(rows):,}; give a number from 0 to {MAX_SAMPLED_ROWS:,}")


def suggest_arguments(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function refuse an argument that it does not have with the name that may have been meant.

    Nothing else changes. Python from 3.13 on does so by itself.
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        refuse_unknown_arguments(function.__qualname__.removesuffix(".__init__"), known, options)
        return function(*arguments, **options)

    return call


def refuse_unknown_arguments(title: str, known: Sequence[str], given: Iterable[str]) -> None:
    """Raise a TypeError for an argument that is not known."""
    for name in given:
        if name not in known:
            raise TypeError(f"{title} has no argument {name!r}; {suggest_names(name, known, 'it has ')}")


def list_options(target: Any) -> list[Option]:
    """Every option of an option object or its class, with type, default and description; nested ones below theirs.

    >>> from dpsyn.recipes import PriView
    >>> [option.path for option in list_options(PriView)][:2]
    ['synthesis', 'synthesis.max_sweeps']
    """
    if not dataclasses.is_dataclass(target):
        raise UserError(
            f"{quote_argument(target)} has no options; give a recipe, a synthesis method, or the class of one"
        )
    return list(_list_options(_instance(target), ""))


def set_options(target: _T, values: Mapping[str, Any], *, prefix: str = "") -> _T:
    """A copy of an option object with some options set, by dotted path; values may be text.

    An option that replaces an object (``synthesis=gum``) is set before the options inside it, in whatever order they
    are given. A UserError names the option that does not exist or whose value cannot be read; ``prefix`` stands before
    its path there, if the object is part of a larger one.
    """
    for path in sorted(values, key=lambda path: path.count(".")):
        target = _set_option(target, path, values[path], prefix)
    return target


def options_to_data(target: Any) -> dict[str, Any]:
    """The options as plain data for JSON: the object's name and all of its fields."""
    data: dict[str, Any] = {"name": target.name} if hasattr(target, "name") else {}
    for field in dataclasses.fields(target):
        value = getattr(target, field.name)
        convert = field.metadata.get("to_data")
        data[field.name] = convert(value) if convert and value is not None else _plain(value)
    return data


def options_from_data(data: Mapping[str, Any], family: Mapping[str, type[_T]]) -> _T:
    """Read an option object back from plain data; ``family`` lists the possible classes by name.

    For synthesis methods, whose fields are plain. Fields with a text form of their own, as recipes have, stay data.
    """
    fields = dict(data)
    name = fields.pop("name", None)
    if not isinstance(name, str) or name not in family:
        raise UserError(f"there is no {quote_argument(name)}; there are {', '.join(family)}")
    known = {field.name for field in dataclasses.fields(family[name])}  # type: ignore[arg-type]
    if unknown := [field for field in fields if field not in known]:
        raise UserError(f"{name} has no option {quote_argument(unknown[0])}; it may come from a newer DPSyn")
    hints = typing.get_type_hints(family[name])
    return family[name](**{field: _from_plain(value, hints[field]) for field, value in fields.items()})


def find_option_object(
    name: str, family: Mapping[str, type[_T]], what: str, values: Mapping[str, Any], *, prefix: str = ""
) -> _T:
    """An option object by its name, with some options set; a UserError lists the names if there is no such object."""
    if not isinstance(values, Mapping) or not all(isinstance(path, str) for path in values):
        raise UserError(f"the options of the {what} are {quote_argument(values)}; give a dictionary of values by path")
    if not isinstance(name, str) or name not in family:
        similar = find_similar(name, family, 1)
        guess = f"; did you mean {similar[0]}? There" if similar else "; there"
        raise UserError(f"there is no {what} {quote_argument(name)}{guess} are {', '.join(family)}")
    return set_options(family[name](), values, prefix=prefix)


# ── setting ──────────────────────────────────────────────────────────────────────────────────────────────────


def _set_option(target: Any, path: str, value: Any, outer: str) -> Any:
    """Set the option at a path inside an object that is itself at ``outer``, which is empty or ends with a dot."""
    head, _, rest = path.partition(".")
    fields = {field.name: field for field in dataclasses.fields(target)} if dataclasses.is_dataclass(target) else {}
    if head not in fields:
        raise _unknown_option_error(target, path, outer)
    if rest:
        return dataclasses.replace(target, **{head: _set_option(getattr(target, head), rest, value, f"{outer}{head}.")})
    new = _parse_value(value, typing.get_type_hints(type(target))[head], fields[head], f"{outer}{head}")
    try:
        return dataclasses.replace(target, **{head: new})
    except UserError as error:
        raise UserError(f"option {outer}{head} is {quote_argument(value)}: {error}") from None


def _unknown_option_error(target: Any, path: str, outer: str) -> UserError:
    if not dataclasses.is_dataclass(target):
        return UserError(f"there is no option {outer + path!r}; {outer[:-1]} holds a value, not further options")
    similar = find_similar(path, [option.path for option in list_options(target)], 1)
    guess = f"; did you mean {outer}{similar[0]}? Its" if similar else "; its"
    names = ", ".join(f"{outer}{field.name}" for field in dataclasses.fields(target))
    known = f"{guess} options are {names}" if names else "; it has none"
    owner = f"{outer[:-1]} is {_title(target)}, which" if outer else _title(target)
    return UserError(f"{owner} has no option {outer + path!r}{known}")


def _parse_value(value: Any, hint: Any, field: dataclasses.Field[Any], path: str) -> Any:
    if not isinstance(value, str):
        return value
    if value.lower() == "none" and type(None) in typing.get_args(hint):
        return None
    if (
        isinstance(hint, type)
        and dataclasses.is_dataclass(hint)
        and not _family(hint)
        and "parse" not in field.metadata
    ):
        inner = dataclasses.fields(hint)[0].name
        raise UserError(f"option {path} holds options of its own; set one of them, such as {path}.{inner}")
    try:
        if "parse" in field.metadata:
            return field.metadata["parse"](value)
        return _parse_text(value, hint)
    except UserError:
        raise  # the text form has a message of its own
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UserError(f"option {path} is {quote_argument(value)}; it takes: {_type_words(hint, field)}") from None


def _parse_text(text: str, hint: Any) -> Any:
    family, origin, arguments = _family(hint), typing.get_origin(hint), typing.get_args(hint)
    if family:
        if text not in family:
            raise ValueError(text)
        return family[text]()
    if origin is typing.Literal:
        matches = [choice for choice in arguments if str(choice) == text]
        if not matches:
            raise ValueError(text)
        return matches[0]
    if origin in (typing.Union, types.UnionType):
        return _parse_text(text, next(part for part in arguments if part is not type(None)))
    if origin is tuple:
        parts = [part.strip() for part in text.split(",")]
        if arguments[-1] is not Ellipsis and len(parts) != len(arguments):
            raise ValueError(text)
        return tuple(_parse_text(part, arguments[0]) for part in parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        return {name.strip(): _parse_text(number, arguments[1]) for name, number in pairs}
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return hint(text.replace("_", "") if hint is int else text)


def _family(hint: Any) -> dict[str, type]:
    """The option classes that a field takes, by name; empty if it takes a plain value."""
    members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    classes = [m for m in members if isinstance(m, type) and dataclasses.is_dataclass(m) and hasattr(m, "name")]
    return {member.name: member for member in classes}


# ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────


def _list_options(target: Any, prefix: str) -> typing.Iterator[Option]:
    hints, descriptions = typing.get_type_hints(type(target)), _field_descriptions(type(target))
    for field in dataclasses.fields(target):
        value = getattr(target, field.name)
        path = f"{prefix}{field.name}"
        description = descriptions.get(field.name, "")
        nested = dataclasses.is_dataclass(value) and "parse" not in field.metadata
        if not nested or _family(hints[field.name]):
            text = "none" if "parse" in field.metadata and value == field.default else _value_text(value)
            yield Option(path, _type_words(hints[field.name], field), text, description)
        if nested:
            yield from _list_options(value, f"{path}.")


def _instance(target: Any) -> Any:
    """An object with default options, from its class; required fields are left out."""
    if not isinstance(target, type):
        return target
    required = [
        field.name
        for field in dataclasses.fields(target)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if not required:
        return target()
    blank: Any = object.__new__(target)
    for field in dataclasses.fields(target):
        default = None if field.name in required else field.default
        factory = field.default_factory
        object.__setattr__(blank, field.name, factory() if factory is not dataclasses.MISSING else default)
    return blank


def _type_words(hint: Any, field: dataclasses.Field[Any]) -> str:
    if "type" in field.metadata:
        return str(field.metadata["type"])
    if family := _family(hint):
        return "|".join(family)
    return _hint_words(hint)


def _hint_words(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "|".join(str(choice) for choice in arguments)
    if origin in (typing.Union, types.UnionType):
        return "|".join("none" if part is type(None) else _hint_words(part) for part in arguments)
    if origin is tuple:
        count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"{count}{_hint_words(arguments[0])}s, separated by commas"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "NAME=NUMBER, separated by commas"
    if hint not in _TYPE_NAMES:
        raise InternalError(f"there are no words for an option of type {hint}")
    return _TYPE_NAMES[hint]


def _value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if dataclasses.is_dataclass(value):
        return str(getattr(value, "name", type(value).__name__))
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number:g}" for name, number in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _field_descriptions(cls: type) -> dict[str, str]:
    """What the ``Attributes:`` sections of a class and its bases say of each field."""
    descriptions: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("Attributes:\n")[2]
        entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.MULTILINE)
        descriptions |= {name: " ".join(text.split()) for name, text in entries}
    return descriptions


# ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of a field; floats must be finite, and whole numbers count as floats."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return value in arguments
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in arguments)
    if origin is tuple:
        fixed = arguments[-1] is not Ellipsis
        return (
            isinstance(value, tuple)
            and (len(value) == len(arguments) or not fixed)
            and all(_fits(part, arguments[0]) for part in value)
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if hint in (int, float, Fraction):
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole or (hint is not int and _is_number(value) and math.isfinite(value))
    return isinstance(value, hint)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _advice(hint: Any, field: dataclasses.Field[Any]) -> str:
    """What to give for a field in Python."""
    if classes := [*_family(hint).values()]:
        objects = ", ".join(f"{cls.__name__}(…)" for cls in classes)
        return f"an object: {objects}" if len(classes) > 1 else f"an object such as {objects}"
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dictionary such as {'income': 4}"
    if isinstance(hint, type) and hint not in _TYPE_NAMES:
        return f"an object of type {hint.__name__}"
    return f"a value of this kind: {_type_words(hint, field)}"


# ── plain data ───────────────────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return options_to_data(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    return value


def _from_plain(value: Any, hint: Any) -> Any:
    family, origin, arguments = _family(hint), typing.get_origin(hint), typing.get_args(hint)
    if family and isinstance(value, Mapping):
        return options_from_data(value, family)
    if isinstance(value, Mapping) and isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{name: _from_plain(part, hints[name]) for name, part in value.items()})
    if isinstance(value, list):
        return tuple(_from_plain(part, arguments[0]) for part in value)
    if hint is Fraction or (origin in (typing.Union, types.UnionType) and Fraction in arguments and value is not None):
        return Fraction(value)
    return float(value) if hint is float and isinstance(value, int) else value


def _title(target: Any) -> str:
    return getattr(target, "name", type(target).__name__)
