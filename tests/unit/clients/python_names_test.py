"""Every public name of the package `attune` is documented, and has a type."""

import ast
import importlib
import inspect
import re
import sys
import unittest

from rank import PACKAGE

sys.path.insert(0, str(PACKAGE))

import attune  # noqa: E402

FILES = [path for path in sorted((PACKAGE / "attune").glob("*.py")) if not path.name.startswith("_")]
# The methods of a Trainer's callbacks, which Lightning and Transformers document.
INHERITED = "on_"
NOT_CONSTRUCTED = ("Sweep",)  # Methods return these, and programs do not construct them.


def undocumented(node, prefix):
    """Yields the public functions, classes and methods below a node of a module that have no docstring."""
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not each.name.startswith(("_", INHERITED)):
            if not ast.get_docstring(each):
                yield prefix + each.name
            if isinstance(each, ast.ClassDef):
                yield from undocumented(each, f"{prefix}{each.name}.")


def exported(module):
    """Returns the names in the __all__ of a module's syntax tree."""
    return [name for node in module.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
            for name in ast.literal_eval(node.value)]


def unexplained(node, prefix, docstring=""):
    """Yields the parameters below a node that the docstring of their function or class does not name in backticks."""
    for each in node.body:
        is_init = isinstance(each, ast.FunctionDef) and each.name == "__init__" and node.name not in NOT_CONSTRUCTED
        if not isinstance(each, (ast.FunctionDef, ast.ClassDef)) or (each.name.startswith(("_", INHERITED)) and not is_init):
            continue
        own = docstring if is_init else ast.get_docstring(each) or ""
        if isinstance(each, ast.ClassDef):
            yield from unexplained(each, f"{prefix}{each.name}.", own)
            continue
        parameters = [*each.args.args, *each.args.kwonlyargs, *filter(None, [each.args.vararg, each.args.kwarg])]
        for name in [parameter.arg for parameter in parameters]:
            if name not in ("self", "cls") and not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", own):
                yield f"{prefix}{each.name}({name})"


class Names(unittest.TestCase):
    def test_functions_and_classes_of_each_module_have_docstrings(self):
        self.assertIn("client.py", [path.name for path in FILES])
        for path in FILES:
            module = ast.parse(path.read_text())
            self.assertTrue(ast.get_docstring(module), path)
            self.assertEqual(list(undocumented(module, f"{path.stem}.")), [])

    def test_docstrings_name_each_parameter(self):
        names = [path.name for path in FILES]
        for name in "torch.py", "lightning.py", "transformers.py":
            self.assertIn(name, names)
        module = ast.parse("def f(a, *, b):\n    'Uses `a`, and b.'\nclass C:\n    '`c`'\n    def __init__(self, c, d): ...")
        self.assertEqual(list(unexplained(module, "m.")), ["m.f(b)", "m.C.__init__(d)"])
        for path in FILES:
            module = ast.parse(path.read_text())
            module.body = [node for node in module.body if getattr(node, "name", None) in exported(module)]
            self.assertEqual(list(unexplained(module, f"{path.stem}.")), [])

    def test_names_that_modules_export_have_docstrings(self):
        with_docstring = []
        for module in map(importlib.import_module, ("attune", "attune.client")):
            for name in set(module.__all__) - set(attune.PUBLIC):
                value = getattr(module, name)
                with_docstring.append(name)
                self.assertTrue(vars(value).get("__doc__") if isinstance(value, type) else value.__doc__, name)
                for method, function in vars(value).items() if isinstance(value, type) else ():
                    if not method.startswith("_"):
                        self.assertTrue(inspect.getdoc(function), f"{name}.{method}")
        self.assertIn("Checkpoint", with_docstring)

    def test_attributes_are_documented_and_have_types(self):
        self.assertEqual(list(attune.PUBLIC), [name for name in attune.__annotations__ if name in attune.__all__])
        for name in attune.PUBLIC:
            self.assertIn(f"`{name}`", attune.__doc__)


if __name__ == "__main__":
    unittest.main()
