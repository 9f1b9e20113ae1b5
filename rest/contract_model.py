"""The REST contract, docs/openapi.yaml, and the base class of the writers that turn its schemas into types."""

import json
import pathlib

import yaml

# Keywords that the schema of a member may have. An unknown one is usually the end of an unquoted description that
# contains a comma.
KEYWORDS = {"$ref", "additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
            "maximum", "minItems", "minLength", "minimum", "oneOf", "pattern", "type"}
NOTE = "Made from docs/openapi.yaml by rest/generate.py. Do not edit."


class ContractError(Exception):
    """The contract says something that the generator does not understand."""


class Contract:
    def __init__(self, path):
        self.document = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        self.schemas = self.document["components"]["schemas"]
        self.structs = {name: schema for name, schema in self.schemas.items() if is_struct(schema)}

    def base(self, schema):
        """The name of the struct that `schema` extends, or None."""
        return name_of(schema["allOf"][0]) if "allOf" in schema else None

    def own(self, schema):
        """The schema of the members that a struct does not inherit."""
        return schema["allOf"][1] if "allOf" in schema else schema

    def members(self, name):
        """(member, schema, is_required) for each member that a struct does not inherit."""
        own = self.own(self.structs[name])
        required = own.get("required", [])
        unknown = set(required) - set(own["properties"])
        if unknown:
            raise ContractError(f"{name}: required, but not a member: {', '.join(sorted(unknown))}")
        for member, schema in own["properties"].items():
            if set(schema) - KEYWORDS:
                raise ContractError(f"{name}.{member}: unknown keywords {', '.join(map(str, set(schema) - KEYWORDS))}")
        return [(member, schema, member in required) for member, schema in own["properties"].items()]

    def in_order(self):
        """The names of all structs. Each follows the structs that it uses."""
        done = []

        def visit(name, path):
            if name in done:
                return
            if name in path:
                raise ContractError(f"{name} contains itself")
            for used in self.uses(self.structs[name]):
                visit(used, [*path, name])
            done.append(name)

        for name in self.structs:
            visit(name, [])
        return done

    def operations(self):
        """(method, path, operation) for each operation."""
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method != "parameters":
                    yield method, path, operation

    def parameter(self, each):
        """Resolves a parameter, which may be a reference."""
        return self.document["components"]["parameters"][name_of(each)] if "$ref" in each else each

    def query_parameters(self):
        """(method, path, name) for each query parameter."""
        for method, path, operation in self.operations():
            both = [*self.document["paths"][path].get("parameters", []), *operation.get("parameters", [])]
            for each in map(self.parameter, both):
                if each["in"] == "query":
                    yield method, path, each["name"]

    def uses(self, schema):
        """The names of the structs that a schema refers to."""
        if isinstance(schema, dict):
            if "$ref" in schema and name_of(schema) in self.structs:
                yield name_of(schema)
            for value in schema.values():
                yield from self.uses(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from self.uses(value)


def is_struct(schema):
    return "allOf" in schema or (schema.get("type") == "object" and "properties" in schema)


def name_of(schema):
    return schema["$ref"].rsplit("/", 1)[1]


def without_null(schema):
    """Returns the schema without null, and whether it allows null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        (other,) = [each for each in kind if each != "null"]
        return {**schema, "type": other}, "null" in kind
    choices = schema.get("oneOf")
    if choices and {"type": "null"} in choices:
        (other,) = [each for each in choices if each != {"type": "null"}]
        return other, True
    return schema, False


class Language:
    """Names the types of one language. `real` names a number that may be NaN or infinite."""

    def __init__(self, contract):
        self.contract = contract

    def type(self, schema):
        schema, nullable = without_null(schema)
        name = self.plain(schema)
        return self.nullable(name) if nullable else name

    def plain(self, schema):
        if "$ref" in schema:
            return self.named(name_of(schema))
        if schema.get("x-any"):
            return self.any(schema)
        if "enum" in schema:
            return self.enum(schema["enum"])
        if schema["type"] == "array":
            return self.list(self.type(schema["items"]))
        if schema["type"] == "object" and isinstance(schema.get("additionalProperties"), dict):
            return self.map(self.type(schema["additionalProperties"]))
        if schema["type"] in ("string", "integer", "number", "boolean"):
            return self.scalar(schema)
        raise ContractError(f"no type for {json.dumps(schema)}")

    def named(self, name):
        if name in self.contract.structs:
            return name
        if name == "Real":
            return self.real()
        return self.plain(self.contract.schemas[name])


def sentence(text):
    return " ".join(text.split())


def comment(text, prefix):
    if not text:
        return []
    words, lines, line = sentence(text).split(), [], prefix.rstrip()
    for word in words:
        if len(line) + 1 + len(word) > 100 and line.strip() != prefix.strip():
            lines.append(line)
            line = prefix.rstrip()
        line += " " + word
    return [*lines, line]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)
