#!/usr/bin/env python3
"""Makes code and tables from the REST contract, docs/openapi.yaml.

    generate.py cpp CONTRACT FOLDER     FOLDER/rest/contract.h, contract.cc and openapi.cc: C++ structs and the document
    generate.py ts CONTRACT FILE        TypeScript interfaces
    generate.py python CONTRACT FILE    Python types, for type checkers
    generate.py page CONTRACT FILE      the tables of FILE (docs/reference/rest-api.md), between its markers
    generate.py page --check CONTRACT FILE    exits with 1 if these tables are out of date

The head of docs/openapi.yaml lists the conventions that this script relies on.
"""

import json
import keyword
import pathlib
import re
import sys

import yaml

BEGIN, END = "<!-- contract: begin -->", "<!-- contract: end -->"
CPP_KEYWORDS = {"continue", "default", "delete", "new", "operator", "register", "requires", "switch", "template"}
# The keywords that a member's schema may have. Any other one is usually the end of an unquoted description with a comma.
KEYWORDS = {"$ref", "additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
            "maximum", "minItems", "minLength", "minimum", "oneOf", "pattern", "type"}
# Keywords of schemas that rest/codec.h checks, and its names for them, in their order.
BOUNDS = {"minimum": "min", "maximum": "max", "minLength": "min_length", "maxLength": "max_length",
          "maxItems": "max_items"}
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
        """The part of a struct that it does not inherit."""
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
        """Names of structs; each follows the structs that it uses."""
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
        """A parameter, which may be a reference."""
        return self.document["components"]["parameters"][name_of(each)] if "$ref" in each else each

    def query_parameters(self):
        """(method, path, name) for each parameter of a query."""
        for method, path, operation in self.operations():
            both = [*self.document["paths"][path].get("parameters", []), *operation.get("parameters", [])]
            for each in map(self.parameter, both):
                if each["in"] == "query":
                    yield method, path, each["name"]

    def uses(self, schema):
        """Structs that a schema refers to."""
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
    """(schema, may it be null)."""
    kind = schema.get("type")
    if isinstance(kind, list):
        (one,) = [each for each in kind if each != "null"]
        return {**schema, "type": one}, "null" in kind
    choices = schema.get("oneOf")
    if choices and {"type": "null"} in choices:
        (one,) = [each for each in choices if each != {"type": "null"}]
        return one, True
    return schema, False


class Language:
    """Names the types of one language. `real` is a number that may be NaN or infinite."""

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


class Cpp(Language):
    SCALARS = {"string": "std::string", "integer": "int64_t", "number": "double", "boolean": "bool"}

    def scalar(self, schema):
        return "uint64_t" if schema.get("format") == "uint64" else self.SCALARS[schema["type"]]

    def real(self):
        return "Real"

    def any(self, schema):
        return "Json"

    def enum(self, values):
        return "std::string"

    def nullable(self, name):
        return f"std::optional<{name}>"

    def list(self, name):
        return f"std::vector<{name}>"

    def map(self, name):
        return f"std::map<std::string, {name}>"

    def member(self, schema, required):
        name = self.type(schema)
        return name if required else f"Absent<{name}>"

    @staticmethod
    def name(member):
        return member + "_" if member in CPP_KEYWORDS else member

    @staticmethod
    def bounds(schema):
        """The last argument of Get, if the schema of a member has bounds."""
        keywords = {**schema.get("items", {}), **schema}  # texts of a list
        found = [f".{name} = {keywords[keyword]}" for keyword, name in BOUNDS.items() if keyword in keywords]
        return f", Bounds{{{', '.join(found)}}}" if found else ""

    @staticmethod
    def default(name):
        return {"int64_t": " = 0", "uint64_t": " = 0", "double": " = 0", "bool": " = false"}.get(name, "")

    def header(self):
        lines = [f"// {NOTE}", "#pragma once", "", '#include "rest/codec.h"', "", "namespace attune::rest {", ""]
        for name in self.contract.in_order():
            schema = self.contract.structs[name]
            base = self.contract.base(schema)
            lines += comment(schema.get("description"), "// ")
            lines.append(f"struct {name}{' : ' + base if base else ''} {{")
            for member, each, required in self.contract.members(name):
                kind = self.member(each, required)
                lines += comment(each.get("description"), "  // ")
                lines.append(f"  {kind} {self.name(member)}{self.default(kind)};")
            lines += ["};", ""]
        for name in self.contract.in_order():
            lines += [f"void Write(const {name}& value, Json& json);", f"void Read(const Place& place, {name}& value);"]
        rows = self.contract.document["x-problems"]["rows"]
        lines += ["", "// The problems that the API answers; each has a row in kProblems.", "enum class ProblemType {"]
        lines += [f"  k{camel(row['name'])}," for row in rows]
        lines += ["};", "", "inline constexpr ProblemRow kProblems[] = {"]
        prefix = self.contract.document["x-problems"]["prefix"]
        lines += [f"    {{{quoted(prefix + row['name'])}, {row['status']}, {quoted(row['title'])}}}," for row in rows]
        lines += ["};", "", "// The parameters that queries may have, by operation.",
                  "inline constexpr QueryParameter kQueryParameters[] = {"]
        lines += [f"    {{{quoted(method.upper())}, {quoted(path)}, {quoted(name)}}},"
                  for method, path, name in self.contract.query_parameters()]
        lines += ["};", "", "// docs/openapi.yaml as JSON.", "extern const char* const kOpenApi;", "",
                  "}  // namespace attune::rest", ""]
        return "\n".join(lines)

    def source(self):
        lines = [f"// {NOTE}", '#include "rest/contract.h"', "", "namespace attune::rest {", ""]
        for name in self.contract.in_order():
            base = self.contract.base(self.contract.structs[name])
            members = self.contract.members(name)
            lines.append(f"void Write(const {name}& value, Json& json) {{")
            lines.append(f"  Write(static_cast<const {base}&>(value), json);" if base else "  json = Json::object();")
            lines += [f"  Put(json, {quoted(member)}, value.{self.name(member)});" for member, _, _ in members]
            lines += ["}", "", f"void Read(const Place& place, {name}& value) {{"]
            lines.append(f"  Read(place, static_cast<{base}&>(value));" if base else "  place.ExpectObject();")
            lines += [f"  Get(place, {quoted(member)}, value.{self.name(member)}{self.bounds(each)});"
                      for member, each, _ in members]
            lines += ["}", ""]
        lines += ["}  // namespace attune::rest", ""]
        return "\n".join(lines)

    def document(self):
        text = json.dumps(self.contract.document, ensure_ascii=False, separators=(",", ":"))
        pieces = [text[i:i + 12000] for i in range(0, len(text), 12000)]  # compilers limit one literal
        lines = [f"// {NOTE}", '#include "rest/contract.h"', "", "namespace attune::rest {", "",
                 "const char* const kOpenApi ="]
        lines += [f"    R\"=#=({piece})=#=\"" for piece in pieces]
        return "\n".join(lines) + ";\n\n}  // namespace attune::rest\n"


class TypeScript(Language):
    SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}

    def scalar(self, schema):
        return self.SCALARS[schema["type"]]

    def named(self, name):
        return name

    def any(self, schema):
        if "additionalProperties" in schema:
            return self.map(self.type(schema["additionalProperties"]))
        return " | ".join(self.type(each) for each in schema["oneOf"]) if "oneOf" in schema else self.map("unknown")

    def enum(self, values):
        return " | ".join(f"'{value}'" for value in values)

    def nullable(self, name):
        return f"{name} | null"

    def list(self, name):
        return f"({name})[]" if " " in name else f"{name}[]"

    def map(self, name):
        return f"Record<string, {name}>"

    def text(self):
        lines = [f"// {NOTE}", ""]
        for name, schema in self.contract.schemas.items():
            lines += ts_comment(schema.get("description"), "")
            if name not in self.contract.structs:
                lines += [f"export type {name} = {self.alias(schema)};", ""]
                continue
            base = self.contract.base(schema)
            lines.append(f"export interface {name}{' extends ' + base if base else ''} {{")
            for member, each, required in self.contract.members(name):
                lines += ts_comment(each.get("description"), "  ")
                lines.append(f"  {member}{'' if required else '?'}: {self.type(each)};")
            lines += ["}", ""]
        prefix = self.contract.document["x-problems"]["prefix"]
        names = [f"  | '{prefix}{row['name']}'" for row in self.contract.document["x-problems"]["rows"]]
        lines += ["/** The type of a problem. */", "export type ProblemType =", *names]
        return "\n".join(lines) + ";\n"

    def alias(self, schema):
        if schema.get("x-any"):
            return self.any(schema)
        if "oneOf" in schema:
            return " | ".join(self.plain(each) for each in schema["oneOf"])
        return self.plain(schema)


class Python(Language):
    SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
    MAPPINGS = ["TrialDetail"]  # structs that attune.client gives methods

    def scalar(self, schema):
        return self.SCALARS[schema["type"]]

    def real(self):
        return "Real"

    def named(self, name):
        return {"Metrics": "dict[str, float]"}.get(name) or super().named(name)  # attune.client converts them

    def any(self, schema):
        if "additionalProperties" in schema:
            return self.map(self.type(schema["additionalProperties"]))
        return "Any" if "oneOf" in schema else self.map("Any")

    def enum(self, values):
        return f"Literal[{', '.join(quoted(value) for value in values)}]"

    def nullable(self, name):
        return f"{name} | None"

    def list(self, name):
        return f"list[{name}]"

    def map(self, name):
        return f"dict[str, {name}]"

    def text(self):
        lines = [f"# {NOTE}", "from typing import Any, Literal, TypedDict, overload", "from typing_extensions import NotRequired", "",
                 '# A number, or a text if JSON cannot express the number.',
                 'Real = float | Literal["nan", "inf", "-inf"]', ""]
        for name in self.contract.in_order():
            schema = self.contract.structs[name]
            members = [(member, self.member(each, required)) for member, each, required in self.contract.members(name)]
            if any(keyword.iskeyword(member) for member, _ in members):
                if self.contract.base(schema):
                    raise ContractError(f"{name}: Python cannot extend a struct by a member that is a keyword")
                entries = ", ".join(f"{quoted(member)}: {kind}" for member, kind in members)
                lines += [f"{name} = TypedDict({quoted(name)}, {{{entries}}})", ""]
                continue
            lines.append(f"class {name}({self.contract.base(schema) or 'TypedDict'}):")
            lines += comment(schema.get("description"), "    # ")
            lines += [f"    {member}: {kind}" for member, kind in members] + [""]
        for name in self.MAPPINGS:
            lines += self.mapping(name)
        return "\n".join(lines)

    def mapping(self, name):
        """A class that has the members of a struct by their names, as a TypedDict has, and may be extended by methods."""
        lines, struct = [], name
        while struct:
            for member, schema, _ in self.contract.members(struct):
                lines += ["    @overload",
                          f"    def __getitem__(self, name: Literal[{quoted(member)}], /) -> {self.type(schema)}: ..."]
            struct = self.contract.base(self.contract.structs[struct])
        lines[0] += "  # type: ignore[override]"  # a dict has all keys
        return [f"class {name}Mapping(dict[str, Any]):", *lines, ""]

    def member(self, schema, required):
        name = self.type(schema)
        return name if required else f"NotRequired[{name}]"


class Page(Language):
    """Types as the tables of the page write them."""

    SCALARS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}

    def scalar(self, schema):
        return self.SCALARS[schema["type"]]

    def named(self, name):
        if name in self.contract.structs:
            return f"[{name}](#{anchor(name)})"
        return {"Real": "number", "SweepId": "text", "Metrics": "map of numbers", "Config": "map",
                "ConfigValue": "value", "AnyObject": "map"}.get(name) or self.plain(self.contract.schemas[name])

    def any(self, schema):
        return "map"

    def enum(self, values):
        return ", ".join(f"`{value}`" if value else "empty" for value in values)

    def nullable(self, name):
        return f"{name}, null"

    def list(self, name):
        return f"list of {name}"

    def map(self, name):
        return f"map of {name}"

    def text(self):
        lines = []
        for tag in self.contract.document["tags"]:
            lines += [f"### {tag['name'].capitalize()}", "", "| request | what it does | answer |", "| --- | --- | --- |"]
            lines += [row for name, row in self.operations() if name == tag["name"]]
            lines.append("")
        lines += ["### Problems", "", "| type | status | when |", "| --- | --- | --- |"]
        problems = self.contract.document["x-problems"]
        lines += [f"| `{problems['prefix']}{row['name']}` | {row['status']} | {row['description']} |"
                  for row in problems["rows"]]
        lines.append("")
        for name, schema in self.contract.structs.items():
            lines += [f"### {name}", ""]
            base = self.contract.base(schema)
            sentences = [sentence(schema["description"])] if "description" in schema else []
            if base:
                sentences.append(f"It also has the members of {self.named(base)}.")
            if sentences:
                lines += [" ".join(sentences), ""]
            lines += ["| member | type | meaning |", "| --- | --- | --- |"]
            for member, each, required in self.contract.members(name):
                optional = "" if required else " (optional)"
                lines.append(f"| `{member}` | {self.type(each)}{optional} | {sentence(each.get('description', ''))} |")
            lines.append("")
        return "\n".join(lines)

    def operations(self):
        for method, path, operation in self.contract.operations():
            query = [f"`{self.contract.parameter(each)['name']}`" for each in operation.get("parameters", [])]
            extra = f"<br>with {', '.join(query)}" if query else ""
            yield operation["tags"][0], (f"| `{method.upper()} {path}` | {operation['summary']}{extra} "
                                         f"| {self.answers(operation)} |")

    def answers(self, operation):
        found = []
        for status, response in operation["responses"].items():
            if status == "default":
                continue
            if "$ref" in response:
                response = self.contract.document["components"]["responses"][name_of(response)]
            for kind, content in response.get("content", {"": {}}).items():
                schema = content.get("schema", {})
                found.append(f"{status} {self.named(name_of(schema)) if '$ref' in schema else kind}".strip())
        return ", ".join(found)


def anchor(name):
    return name.lower()


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


def ts_comment(text, indent):
    return [f"{indent}/** {sentence(text)} */"] if text else []


def camel(name):
    return "".join(part.capitalize() for part in name.split("-"))


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def write(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def page(contract, path, check):
    path = pathlib.Path(path)
    old = path.read_text(encoding="utf-8")
    inner = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    if not inner.search(old):
        raise ContractError(f"{path} has no markers {BEGIN} … {END}")
    new = inner.sub(lambda _: f"{BEGIN}\n\n{Page(contract).text()}\n{END}", old)
    if check and new != old:
        raise ContractError(f"the tables of {path} are out of date: run `ninja -C build contract_page`")
    write(path, new)


def main(arguments):
    check = "--check" in arguments
    arguments = [each for each in arguments if each != "--check"]
    if len(arguments) != 3 or arguments[0] not in ("cpp", "ts", "python", "page"):
        sys.exit(__doc__)
    what, source, target = arguments
    try:
        contract = Contract(source)
        if what == "cpp":
            cpp = Cpp(contract)
            write(f"{target}/rest/contract.h", cpp.header())
            write(f"{target}/rest/contract.cc", cpp.source())
            write(f"{target}/rest/openapi.cc", cpp.document())
        elif what == "page":
            page(contract, target, check)
        else:
            language = {"ts": TypeScript, "python": Python}[what]
            write(target, language(contract).text())
    except ContractError as error:
        sys.exit(f"generate.py: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
