"""Checks that a tested example uses each public name of the package `attune`.

An example is a block of docs/reference/python.md or a script of examples/. Comments, texts and imports do not count, nor does a
member of another class that has the same name: the package's annotations give the types of values.
"""

import ast
import sys
import textwrap
import unittest

from rank import PACKAGE

ROOT = PACKAGE.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402

MODULES = ["attune", "attune.torch", "attune.lightning", "attune.transformers", "attune.client", "attune.tensorboard"]
# Other tests run these: python_page_test and the tests in tests/e2e/python.
SCRIPTS = ["examples/python_ddp/ddp.py", "examples/python_tour/tour.py"]
PAGE = "docs/reference/python.md"
NOT_RUN = "functools.partial("  # marks the block of the page that no test runs


class Package:
    """The definitions in the package's sources. They are read and not imported: some modules need other libraries."""

    def __init__(self):
        self._trees = {}

    def tree(self, module):
        if module not in self._trees:
            path = PACKAGE / f"{module.replace('.', '/')}.py"
            path = path if path.exists() else PACKAGE / module / "__init__.py"
            self._trees[module] = ast.parse(path.read_text()) if path.exists() else ast.parse("")
        return self._trees[module]

    def exported(self, module):
        """Returns the names in the __all__ of a module."""
        [value] = [node.value for node in self.tree(module).body
                   if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"]
        return ast.literal_eval(value)

    def find(self, module, name):
        """Returns (module, syntax tree) of the definition of a name in a module; None if the package does not define it."""
        for node in self.tree(module).body:
            if getattr(node, "name", None) == name or getattr(getattr(node, "target", None), "id", None) == name:
                return module, node
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                return self.find(node.module, name)
        return None

    def members(self, module, node):
        """Returns (module, syntax tree or None) of each public method and attribute of a class, by (class, name)."""
        found = {}
        for base in node.bases:
            place = isinstance(base, ast.Name) and self.find(module, base.id)
            found.update(self.members(*place) if place else {})
        for method in (each for each in node.body if isinstance(each, ast.FunctionDef)):
            found[method.name] = (module, node.name), (module, method)
            for each in ast.walk(method) if method.name == "__init__" else ():
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                    found[each.attr] = (module, node.name), None
        return {name: place for name, place in found.items() if name == "__enter__" or not name.startswith(("_", "on_"))}

    def public(self):
        """Returns all public names with the defining module: (module, name) or (module, class, member)."""
        names = set()
        for module in MODULES:
            for name in self.exported(module):
                where, node = self.find(module, name)
                names.add((where, name))
                if isinstance(node, ast.ClassDef):
                    names |= {(*owner, member) for member, (owner, _) in self.members(where, node).items()}
        return {name for name in names if name[-1] != "__enter__"}


class Uses(ast.NodeVisitor):
    """The public names that a program uses.

    A value is known as ("module", name), ("definition", module, syntax tree) or ("instance", module, class). A method or
    a function is the definition.
    """

    def __init__(self, package, program):
        self._package, self._values, self.found = package, {}, set()
        self.visit(ast.parse(program))

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] == "attune":
                self._values["attune"] = ("module", "attune")

    def visit_ImportFrom(self, node):
        for alias in node.names:
            self._values[alias.asname or alias.name] = ("name", node.module, alias.name)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, self._of(node.value))

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        self._bind(node.target, self._of(node.value))

    def visit_With(self, node):
        for item in node.items:
            self.visit(item.context_expr)
            entered = self._member(self._of(item.context_expr), "__enter__")
            if item.optional_vars is not None:
                self._bind(item.optional_vars, self._result(entered))
        self._visit_all(node.body)

    def visit_ExceptHandler(self, node):
        if node.type is not None:
            self.visit(node.type)
            if node.name:
                self._values[node.name] = self._result(self._of(node.type))
        self._visit_all(node.body)

    def visit_Name(self, node):
        self._of(node)

    def visit_Attribute(self, node):
        self.visit(node.value)
        self._of(node)

    def _visit_all(self, nodes):
        for node in nodes:
            self.visit(node)

    def _bind(self, target, value):
        if isinstance(target, ast.Name):
            self._values[target.id] = value
        else:
            self.visit(target)

    def _of(self, node):
        """Returns the value of an expression, or None if it is not from the package. Records the names that it uses."""
        if isinstance(node, ast.Name):
            value = self._values.get(node.id)
            return self._in_module(*value[1:]) if value and value[0] == "name" else value
        if isinstance(node, ast.Attribute):
            return self._member(self._of(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._result(self._of(node.func))
        return None

    def _in_module(self, module, name):
        if f"{module}.{name}" in MODULES:
            return "module", f"{module}.{name}"
        if module not in MODULES or name not in self._package.exported(module):
            return None
        where, node = self._package.find(module, name)
        self.found.add((where, name))
        return "definition", where, node

    def _member(self, value, name):
        if value is None:
            return None
        if value[0] == "module":
            return self._in_module(value[1], name)
        if not isinstance(value[2], ast.ClassDef):
            return None
        owner, definition = self._package.members(*value[1:]).get(name, (None, None))
        if owner:
            self.found.add((*owner, name))
        if definition is None:
            return None
        is_property = any(getattr(each, "id", "") == "property" for each in definition[1].decorator_list)
        return self._result(("definition", *definition)) if is_property else ("definition", *definition)

    def _result(self, value):
        """Returns the result of calling a value, by its annotation. An instance counts as a use of its class."""
        if value is None or value[0] != "definition":
            return None
        _, module, node = value
        if isinstance(node, ast.ClassDef):
            return "instance", module, node
        returns = node.returns if isinstance(node, ast.FunctionDef) else None
        while isinstance(returns, ast.BinOp):  # … | None
            returns = returns.left
        place = isinstance(returns, ast.Name) and self._package.find(module, returns.id)
        if not place:
            return None
        self.found.add((place[0], place[1].name))
        return ("instance", *place)


def blocks_of_the_page():
    """Returns the Python blocks of the page in order, without the block that no test runs."""
    return [textwrap.dedent(code) for code in markdown.code((ROOT / PAGE).read_text(), "python", None) if NOT_RUN not in code]


class Examples(unittest.TestCase):
    maxDiff = None

    def uses(self, program):
        return Uses(Package(), program).found

    def test_comments_imports_and_other_classes_do_not_count(self):
        self.assertEqual(self.uses("import attune\nfrom attune.client import Server\n# attune.report\n'attune.log'"), set())
        self.assertEqual(self.uses("sweep = other()\nsweep.pause()"), set())

    def test_values_have_the_types_that_annotations_say(self):
        found = self.uses("import attune.client\n"
                          "with attune.client.LocalServer() as server:\n"
                          "    print(server.create({}).trial(3).checkpoint().bytes)\n")
        for name in [("LocalServer",), ("Server", "create"), ("Sweep",), ("Sweep", "trial")]:
            self.assertIn(("attune.client", *name), found)
        self.assertIn(("attune._results", "TrialDetail", "checkpoint"), found)
        self.assertIn(("attune._fetch", "Checkpoint", "bytes"), found)

    def test_an_example_uses_every_public_name(self):
        package = Package()
        public = package.public()
        self.assertGreater(len(public), 80)
        programs = [*blocks_of_the_page(), *((ROOT / script).read_text() for script in SCRIPTS)]
        used = Uses(package, "\n".join(programs)).found
        unused = sorted(".".join(name) for name in public - used)
        self.assertEqual(unused, [], f"no example uses these: add them to a block of {PAGE}, and run it in a test")


if __name__ == "__main__":
    unittest.main()
