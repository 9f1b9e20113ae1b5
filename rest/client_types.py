"""Writes the contract as types of its clients: TypeScript for the dashboard, Python for attune.client."""

import keyword

from contract_model import NOTE, ContractError, Language, comment, quoted, sentence


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
    MAPPINGS = ["TrialDetail"]  # structs to which attune.client adds methods

    def scalar(self, schema):
        return self.SCALARS[schema["type"]]

    def real(self):
        return "Real"

    def named(self, name):
        # attune.client converts these values
        return {"Metrics": "dict[str, float]"}.get(name) or super().named(name)

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
                 '# A number, or a string if JSON cannot express the number.',
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
        """A class with the members of a struct as typed keys, like a TypedDict. Unlike one, it can get methods."""
        lines, struct = [], name
        while struct:
            for member, schema, _ in self.contract.members(struct):
                lines += ["    @overload",
                          f"    def __getitem__(self, name: Literal[{quoted(member)}], /) -> {self.type(schema)}: ..."]
            struct = self.contract.base(self.contract.structs[struct])
        lines[0] += "  # type: ignore[override]"  # dict accepts every key
        return [f"class {name}Mapping(dict[str, Any]):", *lines, ""]

    def member(self, schema, required):
        name = self.type(schema)
        return name if required else f"NotRequired[{name}]"


def ts_comment(text, indent):
    return [f"{indent}/** {sentence(text)} */"] if text else []
