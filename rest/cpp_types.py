"""Writes the contract as C++ structs with functions that read and write them as JSON."""

import json

from contract_model import NOTE, Language, comment, quoted

CPP_KEYWORDS = {"continue", "default", "delete", "new", "operator", "register", "requires", "switch", "template"}
# The schema keywords that rest/codec.h checks, with their names there, in the order of its struct Bounds.
BOUNDS = {"minimum": "min", "maximum": "max", "minLength": "min_length", "maxLength": "max_length",
          "maxItems": "max_items"}


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
        return name if required else f"OptionalMember<{name}>"

    @staticmethod
    def name(member):
        return member + "_" if member in CPP_KEYWORDS else member

    @staticmethod
    def bounds(schema):
        """The last argument of Get for a member whose schema has bounds; otherwise empty."""
        # the strings of a list have the bounds of its items
        keywords = {**schema.get("items", {}), **schema}
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
            lines += [f"void Write(const {name}& value, Json& json);", f"void Read(const JsonPlace& place, {name}& value);"]
        rows = self.contract.document["x-problems"]["rows"]
        lines += ["", "// The problems that the API may answer. Each has a row in kProblems.", "enum class ProblemType {"]
        lines += [f"  k{camel(row['name'])}," for row in rows]
        lines += ["};", "", "inline constexpr ProblemRow kProblems[] = {"]
        prefix = self.contract.document["x-problems"]["prefix"]
        lines += [f"    {{{quoted(prefix + row['name'])}, {row['status']}, {quoted(row['title'])}}}," for row in rows]
        lines += ["};", "", "// The query parameters of each operation.",
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
            lines += ["}", "", f"void Read(const JsonPlace& place, {name}& value) {{"]
            lines.append(f"  Read(place, static_cast<{base}&>(value));" if base else "  place.ExpectObject();")
            lines += [f"  Get(place, {quoted(member)}, value.{self.name(member)}{self.bounds(each)});"
                      for member, each, _ in members]
            lines += ["}", ""]
        lines += ["}  // namespace attune::rest", ""]
        return "\n".join(lines)

    def document(self):
        text = json.dumps(self.contract.document, ensure_ascii=False, separators=(",", ":"))
        # compilers limit the length of a literal
        pieces = [text[i:i + 12000] for i in range(0, len(text), 12000)]
        lines = [f"// {NOTE}", '#include "rest/contract.h"', "", "namespace attune::rest {", "",
                 "const char* const kOpenApi ="]
        lines += [f"    R\"=#=({piece})=#=\"" for piece in pieces]
        return "\n".join(lines) + ";\n\n}  // namespace attune::rest\n"


def camel(name):
    return "".join(part.capitalize() for part in name.split("-"))
