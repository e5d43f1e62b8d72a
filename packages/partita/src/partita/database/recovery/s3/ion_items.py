"""Items in Amazon Ion's text format, for exports and imports.

Sets are lists with an annotation such as $dynamodb_SS, numbers are decimals, binary values are
blobs (guide, "DynamoDB table export output format").
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import orjson

from partita.database.item.attribute_values import AttributeValue, Item

VERSION: Final = b"$ion_1_0 "
SETS: Final = {"$dynamodb_SS": "SS", "$dynamodb_NS": "NS", "$dynamodb_BS": "BS"}


class NotIon(Exception):
    """Raised for content that is not Ion, or is of an Ion type that DynamoDB lacks."""


def ion_struct(members: dict[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (_text(name), value) for name, value in members.items())


def ion_item(item: Item) -> bytes:
    return ion_struct({name: ion_value(value) for name, value in item.items()})


def ion_value(value: AttributeValue) -> bytes:
    for kind, content in value.items():
        return _WRITERS[kind](content)
    raise AssertionError("a value without a type")


def _text(text: str) -> bytes:
    return orjson.dumps(text)


def _number(number: str) -> bytes:
    mantissa, _, exponent = number.upper().partition("E")
    if exponent:
        return f"{mantissa}d{int(exponent)}".encode()
    return (number if "." in number else f"{number}.").encode()


def _blob(base64: str) -> bytes:
    return b"{{%b}}" % base64.encode()


def _set(kind: str, write: Callable[[str], bytes]) -> Callable[[list[str]], bytes]:
    return lambda members: b"$dynamodb_%b::[%b]" % (kind.encode(), b",".join(map(write, members)))


_WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "S": _text,
    "N": _number,
    "B": _blob,
    "BOOL": lambda flag: b"true" if flag else b"false",
    "NULL": lambda _: b"null",
    "L": lambda members: b"[%b]" % b",".join(map(ion_value, members)),
    "M": ion_item,
    "SS": _set("SS", _text),
    "NS": _set("NS", _number),
    "BS": _set("BS", _blob),
}


def read_ion(content: bytes) -> Iterator[Any]:
    """Yields the values of a file; raises NotIon at the first one that cannot be parsed."""
    from io import BytesIO

    from amazon.ion import simpleion
    from amazon.ion.exceptions import IonException

    try:
        yield from simpleion.load(BytesIO(content), single_value=False, parse_eagerly=False)
    except (IonException, ValueError, TypeError) as error:
        raise NotIon(str(error)) from None


def from_ion(value: Any) -> AttributeValue:
    """Converts an Ion value into an attribute value; raises NotIon if DynamoDB lacks its type."""
    from amazon.ion.core import IonType

    kind = getattr(value, "ion_type", None)
    for annotation in getattr(value, "ion_annotations", ()):
        if annotation.text in SETS:
            set_kind = SETS[annotation.text]
            return {set_kind: [next(iter(from_ion(member).values())) for member in value]}
    if kind is IonType.NULL or (getattr(value, "ion_type", None) is None and value is None):
        return {"NULL": True}
    if kind in (IonType.STRING, IonType.SYMBOL):
        return {"S": str(value.text if kind is IonType.SYMBOL else value)}
    if kind is IonType.BOOL:
        return {"BOOL": bool(value)}
    if kind in (IonType.INT, IonType.DECIMAL, IonType.FLOAT):
        return {"N": str(Decimal(str(value)))}
    if kind in (IonType.BLOB, IonType.CLOB):
        return {"B": b64encode(bytes(value)).decode()}
    if kind in (IonType.LIST, IonType.SEXP):
        return {"L": [from_ion(member) for member in value]}
    if kind is IonType.STRUCT:
        return {"M": item_from_ion(value)}
    raise NotIon(f"an attribute has the Ion type {getattr(kind, 'name', kind)}")


def item_from_ion(struct: Any) -> Item:
    return {str(getattr(name, "text", name)): from_ion(value) for name, value in struct.items()}
