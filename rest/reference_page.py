"""Writes the tables of docs/reference/rest-api.md."""

import pathlib
import re

from contract_model import ContractError, Language, name_of, sentence

BEGIN, END = "<!-- contract: begin -->", "<!-- contract: end -->"


class Page(Language):
    """Names types in the words of the page's tables."""

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


def write_page(contract, path, check):
    """Replaces the tables between the markers of a page. With `check`, fails if they are out of date."""
    path = pathlib.Path(path)
    old = path.read_text(encoding="utf-8")
    inner = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    if not inner.search(old):
        raise ContractError(f"{path} has no markers {BEGIN} … {END}")
    new = inner.sub(lambda _: f"{BEGIN}\n\n{Page(contract).text()}\n{END}", old)
    if not check:
        path.write_text(new, encoding="utf-8")
    elif new != old:
        raise ContractError(f"the tables of {path} are out of date: run `ninja -C build contract_page`")
