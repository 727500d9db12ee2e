"""Reads documents that people write, in JSON or YAML: text in, checked values out, or one line on what is wrong.

Nothing here opens a file: a `Form` gets the text and the name to use for it in errors. YAML is turned into JSON first,
so that both are checked by the same strict rules (a number in quotes is refused, 2.0 is a whole number). A line says
where (with the name of a list's member, if it has one), what was given and what was expected. What is expected stands
in the form, or, for a pydantic model, in the types of its fields (`Expected`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import yaml
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from fairway.errors import InputError
from fairway.options import nearest

T = TypeVar("T")
Path = tuple[int | str, ...]

_LONGEST_VALUE = 40
_LONGEST_LINE = 400
_LONGEST_WHOLE_NUMBER = 10**4000
"""Python refuses to write out a whole number of more than 4,300 digits."""
_DEEPEST = 100
"""Brackets that may be open at once in YAML."""
_MOST_BYTES = 2**53
_MOST_SECONDS = 1e9


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name = Annotated[str, Field(min_length=1)]
Bytes = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=_MOST_BYTES)]
Duration = Annotated[float, Field(ge=0, le=_MOST_SECONDS, allow_inf_nan=False)]

A_NAME = "text of at least one character"
A_SIZE = f"a whole number from 0 to {_MOST_BYTES} (bytes)"
A_DURATION = f"a number from 0 to {_MOST_SECONDS:g} (seconds)"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a value of a type has to be, in words for errors; it stands in the type's annotation."""

    words: str


@dataclass(frozen=True)
class Form(Generic[T]):
    """What a document has to look like.

    `expected` says what each field has to be, by its path, in which `*` stands for a position in a list or a name that
    the document chooses. `parts` are the dataclasses or models of the objects in it, by path.
    """

    content: type[T]
    expected: Mapping[str, str]
    parts: Mapping[str, type[Any]]

    @classmethod
    def of(cls, content: type[T], words: str) -> Form[T]:
        """The form of a pydantic model, from its own annotations; `words` say what the whole document has to be."""
        expected, parts = {"": words}, dict[str, type[Any]]()
        _collect(content, "", expected, parts)
        return cls(content, expected, parts)

    def read(self, text: str | bytes, source: str) -> T:
        """The content of a document; `source` is its name in errors."""
        try:
            return self._checked(json_of(text, source, self.expected[""]))
        except InputError as error:
            raise about(source, error) from None

    def read_all(self, text: str | bytes, source: str, *, most: int) -> list[T]:
        """The content of each document in a text: those of YAML between lines of `---`, the members of a JSON list."""
        try:
            documents = _documents_of(text, source, self.expected[""], most)
            if len(documents) == 1:
                return [self._checked(documents[0])]
        except InputError as error:
            raise about(source, error) from None
        found: list[T] = []
        for number, document in enumerate(documents, 1):
            try:
                found.append(self._checked(document))
            except InputError as error:
                raise about(f"{source}, document {number}", error) from None
        return found

    @cached_property
    def _parser(self) -> TypeAdapter[T]:
        return TypeAdapter(self.content)

    def _checked(self, content: bytes) -> T:
        parser = self._parser
        try:
            return parser.validate_json(content, strict=True)
        except ValidationError as failure:
            problems = [problem for problem in _problems(failure) if not _is_whole_float(problem)]
        if not problems:  # nothing is wrong but that some whole numbers are written as 2.0
            try:
                return parser.validate_json(content)
            except ValidationError as failure:  # such as -2.0, which is whole but out of range
                problems = _problems(failure)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError(self._line(problems[0], content) + more)

    def _line(self, problem: Mapping[str, Any], content: bytes) -> str:
        """One problem that pydantic found, as where it is, what was given and what was expected."""
        kind: str = problem["type"]
        if kind == "json_invalid":
            return f"not valid JSON: {problem['ctx']['error']}; correct it there"
        path: Path = problem["loc"]
        if kind == "missing" and isinstance(path[-1], int):  # too few values where there must be two
            kind, path = "too_short", path[:-1]
        if path and path[-1] == "[key]" and kind != "value_error":
            return f"{written(path[:-2])}: a name with no characters given, expected {A_NAME}"
        path = path[:-1] if path and path[-1] == "[key]" else path
        where = written(path, json.loads(content))
        if kind == "value_error":
            return f"{where}: {problem['ctx']['error']}"
        if kind == "missing":
            return f"{where}: missing, expected {self._expected(path)}; add it"
        if kind in {"unexpected_keyword_argument", "extra_forbidden"}:
            return f"{where}: {self._no_such_field(path)}"
        return f"{where}: {shown(problem['input'])} given, expected {self._expected(path)}"

    def _pattern(self, path: Path) -> str:
        pattern = ""
        for step in path:
            literal = f"{pattern}.{step}".lstrip(".")
            pattern = literal if literal in self.expected else f"{pattern}.*".lstrip(".")
        return pattern

    def _expected(self, path: Path) -> str:
        return self.expected.get(self._pattern(path), "something else")

    def _no_such_field(self, path: Path) -> str:
        name, known = str(path[-1]), names_of(self.parts[self._pattern(path[:-1])])
        if name in known:  # a second name of a field that is given
            return f"given beside {known[name]}, which says the same; keep one of them"
        return "no such field" + (nearest(name, known) or f"; take it out or use one of {', '.join(known)}")


def names_of(part: type[Any]) -> dict[str, str]:
    """Every name by which a document may give a field of an object, and the field that it means."""
    if not issubclass(part, BaseModel):
        return {known.name: known.name for known in fields(part)}
    names: dict[str, str] = {}
    for field, facts in part.model_fields.items():
        others = facts.validation_alias.choices if isinstance(facts.validation_alias, AliasChoices) else ()
        names |= dict.fromkeys((field, *(other for other in others if isinstance(other, str))), field)
    return names


def _collect(kind: Any, path: str, expected: dict[str, str], parts: dict[str, type[Any]]) -> None:
    """Note what every value inside a type has to be, and which of them are objects."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        _note(kind.__metadata__, path, expected)
        _collect(arguments[0], path, expected, parts)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        parts[path] = kind
        for name, field in names_of(kind).items():
            inside, facts = f"{path}.{name}".lstrip("."), kind.model_fields[field]
            _note(facts.metadata, inside, expected)
            _collect(facts.annotation, inside, expected, parts)
    elif isinstance(origin, type) and issubclass(origin, Mapping | Sequence):
        _collect(arguments[issubclass(origin, Mapping)], f"{path}.*", expected, parts)
    else:
        for one in arguments:  # of a union
            _collect(one, path, expected, parts)


def _note(annotations: Iterable[object], path: str, expected: dict[str, str]) -> None:
    for one in annotations:
        if isinstance(one, Expected):
            expected[path] = one.words


def about(source: str, error: InputError) -> InputError:
    """The same error with the name of the document in front, as a line that does not fill the screen."""
    return InputError(_shortened(f"{source}: {error}", _LONGEST_LINE))


def _problems(failure: ValidationError) -> list[dict[str, Any]]:
    return [dict(problem) for problem in failure.errors(include_url=False, include_context=True)]


def _is_whole_float(problem: Mapping[str, Any]) -> bool:
    value = problem["input"]
    return problem["type"] == "int_type" and isinstance(value, float) and value.is_integer()


def json_of(text: str | bytes, source: str, expected: str) -> bytes:
    """The document as JSON in UTF-8, whichever of the two it is written in; refuses what is neither."""
    content, is_yaml = _content_of(text, source, expected)
    try:
        return _json_of_yaml(content) if is_yaml else _json_without_repeated_names(content)
    except RecursionError:
        raise InputError(f"nested too deeply, expected {expected}") from None


def _documents_of(text: str | bytes, source: str, expected: str, most: int) -> list[bytes]:
    """The documents of a text, each as JSON; those of YAML that say nothing are left out."""
    content, is_yaml = _content_of(text, source, expected)
    try:
        if is_yaml:
            documents = _all_of_yaml(content, most)
        else:
            whole = _json_without_repeated_names(content)
            listed = json.loads(whole) if content.lstrip().startswith("[") else None
            documents = [whole] if listed is None else [json.dumps(one).encode() for one in listed[: most + 1]]
    except RecursionError:
        raise InputError(f"nested too deeply, expected {expected}") from None
    if len(documents) > most:
        raise InputError(f"more than {most} documents given, the most that is taken at once; give them in parts")
    if not documents:
        raise InputError(f"empty, expected {expected}")
    return documents


def _content_of(text: str | bytes, source: str, expected: str) -> tuple[str, bool]:
    """A document as text, and whether it is to be read as YAML."""
    try:
        content = text if isinstance(text, str) else text.decode("utf-8-sig")
        content.encode()
    except UnicodeError:
        raise InputError("not text in UTF-8; save it as JSON or YAML in UTF-8") from None
    content = content.removeprefix("\ufeff")
    if not content.strip():
        raise InputError(f"empty, expected {expected}")
    return content, source.lower().endswith((".yaml", ".yml")) or content.lstrip()[0] not in "{["


def _json_without_repeated_names(text: str) -> bytes:
    """The text itself; refuses an object that names a field twice, which would silently hide one of the values."""
    repeated: list[tuple[object, str]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            repeated.append((members, _first_repeated(name for name, _ in pairs)))
        return members

    try:
        document = json.loads(text, object_pairs_hook=collect, parse_int=float)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno} column {error.colno}"
        raise InputError(f"not valid JSON: {error.msg} {where}; correct it there") from None
    if repeated:
        # An object is collected after those inside it, so the last one cannot be hidden by a repetition around it.
        members, name = repeated[-1]
        path = next(path for path, value in _values(document) if value is members)
        raise InputError(f"{written((*path, name), document)}: given twice; keep one of them")
    return text.encode()


class _Loader(yaml.SafeLoader):
    """YAML as most people mean it: 1e9 is a number, a name given twice a mistake, and nothing stands for another."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise InputError(f"line {mark.line + 1}: an alias (*) given, expected the value itself; write it out")
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, token: Any) -> None:
        """PyYAML looks at all that is open for every bracket, so that ten thousand of them take it many seconds."""
        if self.flow_level >= _DEEPEST:
            raise RecursionError
        super().fetch_flow_collection_start(token)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        members = super().construct_mapping(node, deep=deep)
        if len(members) < len(node.value):
            name = _first_repeated(self.construct_object(key) for key, _ in node.value)
            raise InputError(f"line {node.start_mark.line + 1}: '{name}' given twice; keep one of them")
        return members


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _json_of_yaml(text: str) -> bytes:
    with _yaml_problems():
        return _dumped(yaml.load(text, Loader=_Loader))


def _all_of_yaml(text: str, most: int) -> list[bytes]:
    """The documents of a text, one more at the most than are wanted; one alone may be empty, which is for the form."""
    with _yaml_problems():
        found = list(islice(yaml.load_all(text, Loader=_Loader), most + 1))
        return [_dumped(one) for one in found if one is not None or len(found) == 1]


@contextmanager
def _yaml_problems() -> Iterator[None]:
    """Let an error of PyYAML be one line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise InputError(f"not valid YAML: {error.problem}{where}; correct it there") from None
    except (InputError, RecursionError):
        raise
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML does not expect every value of the kinds that it knows, such as a number of a thousand digits.
        raise InputError(f"not valid YAML: {' '.join(str(error).split())}; correct it") from None


def _dumped(document: object) -> bytes:
    try:
        return json.dumps(document, default=str).encode()  # a date is text, and will be refused as such
    except (TypeError, ValueError) as error:  # a name that is a date, a number of a thousand digits
        raise InputError(f"cannot be written as JSON: {error}; use text, numbers, lists and mappings") from None


def _first_repeated(names: Iterable[T]) -> T:
    """The first of the names that comes again; there has to be one."""
    seen: set[T] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no name comes twice")


def written(path: Path, document: object = None) -> str:
    """The path as one would write it, with the names of list members: `stages[1] ('ocr').seconds`."""
    text = ""
    for step in path:
        document = _member(document, step)
        if isinstance(step, int):
            text += f"[{step}]"
            name = document.get("name") if isinstance(document, dict) else None
            if isinstance(name, str):
                text += f" ({_shortened(repr(name), _LONGEST_VALUE)})"
        elif re.fullmatch(r"[\w-]{1,40}", step):
            text += f".{step}" if text else step
        else:
            text += f"[{shown(step)}]"
    return text or "the document"


def _member(document: object, step: int | str) -> object:
    if isinstance(step, int):
        return document[step] if isinstance(document, list) and step < len(document) else None
    return document.get(step) if isinstance(document, dict) else None


def shown(value: object) -> str:
    """A value from a document, short enough for a line."""
    match value:
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
        case str() | bool() | None:
            return _shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
        case int() if abs(value) >= _LONGEST_WHOLE_NUMBER:
            return "a whole number of very many digits"
    return _shortened(str(value), _LONGEST_VALUE)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _values(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Everything in a document with its path, the outermost first."""
    yield path, value
    members: Iterator[tuple[int | str, object]] = iter(())
    if isinstance(value, dict):
        members = iter(value.items())
    elif isinstance(value, list):
        members = iter(enumerate(value))
    for step, member in members:
        yield from _values(member, (*path, step))
